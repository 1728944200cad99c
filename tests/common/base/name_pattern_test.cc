#include "common/base/name_pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(NamePatternTest, MatchesWholeNamesOnly) {
  const auto pattern = NamePattern::Create("pattern", "conv[0-9]+/(weights|b)");
  ASSERT_THAT(pattern, IsOk());
  EXPECT_TRUE((*pattern)->MatchesWhole("conv12/weights"));
  EXPECT_TRUE((*pattern)->MatchesWhole("conv1/b"));
  EXPECT_FALSE((*pattern)->MatchesWhole("conv1/bias"));
  EXPECT_FALSE((*pattern)->MatchesWhole("a/conv1/b"));
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
