#include "ps_server/caller/namespace_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(NamespaceTableTest, KnowsTheDefaultNamespaceAndNamesAnyOther) {
  NamespaceTable<int> table(/*max_named=*/0, 7);
  EXPECT_EQ(table.Find(""), &table.default_value());
  EXPECT_EQ(table.default_value(), 7);
  EXPECT_EQ(table.Find("a"), nullptr);
  EXPECT_THAT(table.FindOrAdd("pull", "a\n", 8).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(StartsWith("pull: namespace 'a\\n'; only "),
                             HasSubstr("--keep_serving"))));
}

TEST(NamespaceTableTest, MakesNamedOnesUpToItsLimitAndSaysWhoIsThere) {
  NamespaceTable<int> table(/*max_named=*/2, 7);
  ASSERT_THAT(table.FindOrAdd("hello", "a", 1), IsOk());
  EXPECT_EQ(**table.FindOrAdd("hello", "a", 5), 1);
  ASSERT_THAT(table.FindOrAdd("hello", "b", 2), IsOk());
  EXPECT_THAT(table.FindOrAdd("hello", "c", 3).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(StartsWith("hello: namespace 'c'"),
                             HasSubstr("a, b"), HasSubstr("namespace drop"))));
  table.Erase("a");
  EXPECT_THAT(table.FindOrAdd("hello", "c", 3), IsOk());
  EXPECT_THAT(table.FindOrAdd("hello", "c d", 3).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted letters")));
}

TEST(NamespaceTableTest, PutsAValueInTheOldOnesPlace) {
  NamespaceTable<int> table(/*max_named=*/2, 7);
  table.Put("b", 1);
  table.Put("b", 2);
  table.Put("", 8);
  EXPECT_EQ(table.default_value(), 8);
  std::vector<std::string> seen;
  table.ForEach([&seen](const std::string& name, int value) {
    seen.push_back(name + "=" + std::to_string(value));
  });
  EXPECT_THAT(seen, ElementsAre("=8", "b=2"));
}

}  // namespace
}  // namespace muster
