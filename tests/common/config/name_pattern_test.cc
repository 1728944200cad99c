#include "common/config/name_pattern.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(NamePatternTest, MatchesWholeNamesOnly) {
  const auto pattern = NamePattern::Create("pattern", "conv[0-9]+/(weights|b)");
  ASSERT_THAT(pattern, IsOk());
  EXPECT_TRUE((*pattern)->MatchesWhole("conv12/weights"));
  EXPECT_TRUE((*pattern)->MatchesWhole("conv1/b"));
  EXPECT_FALSE((*pattern)->MatchesWhole("conv1/bias"));
  EXPECT_FALSE((*pattern)->MatchesWhole("a/conv1/b"));
}

TEST(NamePatternTest, GivesTheGroupsOfAWholeName) {
  const auto pattern = NamePattern::Create("pattern", "(a|(b))/(.*)/(.*)");
  ASSERT_THAT(pattern, IsOk());
  EXPECT_EQ((*pattern)->num_groups(), 4);
  EXPECT_THAT((*pattern)->Groups("a/x/y/z"),
              Optional(ElementsAre("a", "", "x/y", "z")));
  EXPECT_THAT((*pattern)->Groups("b//"),
              Optional(ElementsAre("b", "b", "", "")));
  EXPECT_EQ((*pattern)->Groups("c/x/y"), std::nullopt);
  EXPECT_EQ((*pattern)->Groups("-a/x/y"), std::nullopt);
}

TEST(NamePatternTest, SaysWhichNamesThereAreIfItMatchesNone) {
  std::vector<std::string> names = {"conv1/weights", "conv1/bias"};
  const auto pattern = NamePattern::Create("pattern", "conv1/wieghts");
  ASSERT_THAT(pattern, IsOk());
  EXPECT_THAT((*pattern)->CheckMatches("pattern", names),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "pattern 'conv1/wieghts' matches no whole name; did you "
                       "mean 'conv1/weights'? there are: conv1/weights, "
                       "conv1/bias"));
  names.resize(30, "dense");
  EXPECT_THAT((*pattern)->CheckMatches("pattern", names),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dense, and 10 more")));
  names.push_back("conv1/wieghts");
  EXPECT_THAT((*pattern)->CheckMatches("pattern", names), IsOk());
}

TEST(NamePatternTest, OffersTheNearestLayer) {
  const std::vector<std::string> names = {"hidden/weights", "m.fc.bias"};
  for (const auto& [text, nearest] :
       {std::make_pair("hiden/.*", "'hidden/.*'"),
        std::make_pair("m\\.fcc\\.(.*)", "'m.fc..*'")}) {
    const auto pattern = NamePattern::Create("pattern", text);
    ASSERT_THAT(pattern, IsOk());
    EXPECT_THAT(
        (*pattern)->CheckMatches("pattern", names),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("did you mean ", nearest, "?"))));
  }
}

TEST(NamePatternTest, RefusesWhatCouldTakeForEver) {
  for (const std::string& text :
       {std::string(), std::string(257, 'a'), std::string("a{1,9}"),
        std::string("(a)\\1"), std::string("a\0b", 3), std::string("(")}) {
    EXPECT_THAT(NamePattern::Create("log_tensors.pattern", text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("log_tensors.pattern '")))
        << text;
  }
}

}  // namespace
}  // namespace muster
