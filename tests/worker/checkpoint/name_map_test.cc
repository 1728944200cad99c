#include "worker/checkpoint/name_map.h"

#include <optional>
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
using ::testing::IsEmpty;
using ::testing::Not;

std::optional<std::string> Map(const std::vector<std::string>& rules,
                               const std::string& name) {
  const auto map = NameMap::Create(rules);
  EXPECT_THAT(map, IsOk());
  if (!map.ok()) return std::nullopt;
  const NameMap::Mapped mapped = map->Map(name);
  return mapped.left_out ? std::nullopt : std::make_optional(mapped.name);
}

TEST(NameMapTest, LeavesANameThatFitsNoRule) {
  EXPECT_EQ(Map({}, "a"), "a");
  EXPECT_EQ(Map({"b=c", "ab.*=x", ".*b=x"}, "a"), "a");
}

TEST(NameMapTest, RenamesOne) {
  EXPECT_EQ(Map({"a=b"}, "a"), "b");
  EXPECT_EQ(Map({"net.conv.bias=conv/bias"}, "net.conv.bias"), "conv/bias");
}

TEST(NameMapTest, FillsInWhatTheGroupsMatched) {
  EXPECT_EQ(Map({R"(encoder/(.*)=backbone/\1)"}, "encoder/conv1/bias"),
            "backbone/conv1/bias");
  EXPECT_EQ(Map({R"(model\.(.*)\.weight=\1/weights)"}, "model.a.b.weight"),
            "a.b/weights");
  EXPECT_EQ(Map({R"((.*)\.(w|b)=\2/\1\\)"}, "a.w"), "w/a\\");
  EXPECT_EQ(Map({R"(a(b)?c=x\1y)"}, "ac"), "xy");
}

TEST(NameMapTest, TheFirstRuleThatFitsDecides) {
  EXPECT_EQ(Map({"a.bias=x", R"(a\.(.*)=y/\1)"}, "a.bias"), "x");
  EXPECT_EQ(Map({"a.bias=x", R"(a\.(.*)=y/\1)"}, "a.w"), "y/w");
}

TEST(NameMapTest, AnEmptyReplacementLeavesItOut) {
  EXPECT_EQ(Map({"head.*="}, "head.weight"), std::nullopt);
  EXPECT_EQ(Map({"head/.*="}, "head/weights"), std::nullopt);
}

TEST(NameMapTest, ATensorThatIsLeftOutHasTheNameThatOtherRulesGive) {
  const auto map =
      NameMap::Create({R"(m\.head\..*=)", R"(m\.(.*)\.b=\1/bias)"});
  ASSERT_THAT(map, IsOk());
  EXPECT_TRUE(map->Map("m.head.b").left_out);
  EXPECT_EQ(map->Map("m.head.b").name, "head/bias");
  EXPECT_EQ(map->Map("m.head.x").name, "m.head.x");
}

TEST(NameMapTest, RefusesRulesThatSayNothing) {
  for (const char* rule : {"", "a", "=b", "a=b=c", "a(=b", R"(a=\1)",
                           R"((a)=\2)", R"((a)=\0)", R"(a=b\)", "a{2}=b"}) {
    EXPECT_THAT(NameMap::Create({rule}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--init_from_map '")))
        << rule;
  }
}

TEST(NameMapTest, AStarInAReplacementIsAnsweredWithAGroup) {
  for (const char* rule : {"m.*.weight=*/weights", "*=net/*"}) {
    EXPECT_THAT(NameMap::Create({rule}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(rule), HasSubstr("(.*)"))))
        << rule;
  }
}

TEST(NameMapTest, NamesARuleThatMatchesNothingAndTheNearest) {
  const auto map = NameMap::Create({"a=", "haed/weights="});
  ASSERT_THAT(map, IsOk());
  EXPECT_THAT(map->CheckMatches({"a", "head/weights"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--init_from_map 'haed/weights'"),
                             HasSubstr("did you mean 'head/weights'"))));
  EXPECT_THAT(map->CheckMatches({"a", "haed/weights"}), IsOk());
}

using Names = std::vector<std::string>;

TEST(NameMapTest, RulesLeaveOutTheLayersOfTensors) {
  const Names names = {"conv/w", "fc/w", "fc/b", "m.fc.w", "m.fc.b"};
  EXPECT_THAT(RulesThatLeaveOut({}, names), IsEmpty());
  EXPECT_THAT(RulesThatLeaveOut(Names{"fc/w", "fc/b", "m.fc.b"}, names),
              ElementsAre("fc/.*=", R"(m\.fc\..*=)"));
}

TEST(NameMapTest, RulesLeaveOutOneTensorWhereOthersLieDeeperOrThereIsNoLayer) {
  const Names names = {"net/scale", "net/conv/w", "bias"};
  EXPECT_THAT(RulesThatLeaveOut(Names{"net/scale", "bias"}, names),
              ElementsAre("net/scale=", "bias="));
}

TEST(NameMapTest, RulesLeaveOutWhateverATensorIsCalled) {
  const Names names = {"a+b[0]", "it's=x",      "(\n)",
                       "$HOME",  "x*y{2}^|\\?", "unit/é"};
  for (const std::string& name : names) {
    const Names rules = RulesThatLeaveOut({name}, names);
    ASSERT_EQ(rules.size(), 1u) << name;
    EXPECT_THAT(rules[0], Not(HasSubstr("'")));
    EXPECT_EQ(Map(rules, name), std::nullopt) << rules[0];
    for (const std::string& other : names) {
      if (other == name) continue;
      EXPECT_EQ(Map(rules, other), other) << rules[0];
    }
  }
  EXPECT_THAT(RulesThatLeaveOut(Names{std::string(300, 'a')}, {}), IsEmpty());
}

}  // namespace
}  // namespace muster
