#include "worker/checkpoint/name_map.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::optional<std::string> Map(const std::vector<std::string>& rules,
                               const std::string& name) {
  const auto map = NameMap::Create(rules);
  EXPECT_THAT(map, IsOk());
  return map.ok() ? map->Map(name) : std::nullopt;
}

TEST(NameMapTest, LeavesANameThatFitsNoRule) {
  EXPECT_EQ(Map({}, "a"), "a");
  EXPECT_EQ(Map({"b=c", "ab*=x", "*b=x"}, "a"), "a");
}

TEST(NameMapTest, RenamesOne) { EXPECT_EQ(Map({"a=b"}, "a"), "b"); }

TEST(NameMapTest, FillsInWhatTheStarsWere) {
  EXPECT_EQ(Map({"model.*.weight=*/weights"}, "model.conv1.weight"),
            "conv1/weights");
  EXPECT_EQ(Map({"*.*.*=*/*/*"}, "a.b.c.d"), "a/b/c.d");
  EXPECT_EQ(Map({"*=net/*"}, "a"), "net/a");
  EXPECT_EQ(Map({"a*b*c=*-*"}, "abbc"), "-b");
  EXPECT_EQ(Map({"ab*b=*"}, "ab"), "ab");  // The pieces do not overlap.
}

TEST(NameMapTest, TheFirstRuleThatFitsDecides) {
  EXPECT_EQ(Map({"a.bias=x", "a.*=y/*"}, "a.bias"), "x");
  EXPECT_EQ(Map({"a.bias=x", "a.*=y/*"}, "a.w"), "y/w");
}

TEST(NameMapTest, AnEmptyReplacementLeavesItOut) {
  EXPECT_EQ(Map({"head.*="}, "head.weight"), std::nullopt);
}

TEST(NameMapTest, RefusesRulesThatSayNothing) {
  for (const char* rule : {"", "a", "=b", "a=b=c", "a=*", "*=*/*"}) {
    EXPECT_THAT(NameMap::Create({rule}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(rule)))
        << rule;
  }
}

}  // namespace
}  // namespace muster
