#include "ps_server/caller/namespace_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::StartsWith;

TEST(NamespaceTableTest, KnowsTheDefaultNamespaceAndNamesAnyOther) {
  NamespaceTable<int> table(7);
  EXPECT_THAT(table.Find("pull", ""), IsOkAndHolds(&table.default_value()));
  EXPECT_EQ(table.default_value(), 7);
  EXPECT_THAT(table.Find("pull", "a\n"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       StartsWith("pull: namespace 'a\\n'; only ")));
}

}  // namespace
}  // namespace muster
