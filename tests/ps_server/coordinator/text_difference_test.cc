#include "ps_server/coordinator/text_difference.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kTraining[] =
    "model {\n"
    "  name: \"mlp\"\n"
    "}\n"
    "optimizer {\n"
    "  name: \"adam\"\n"
    "  attr {\n"
    "    name: \"beta1\"\n"
    "    f: 0.9\n"
    "  }\n"
    "  attr {\n"
    "    name: \"learning_rate\"\n"
    "    f: 0.001\n"
    "  }\n"
    "}\n"
    "seed: 1\n";

std::string Replace(std::string text, const std::string& from,
                    const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(TextDifferenceTest, NamesTheFieldWithTheNameOfItsMessage) {
  EXPECT_EQ(FirstDifference(kTraining, Replace(kTraining, "0.001", "0.5")),
            "optimizer.attr 'learning_rate': line 12 is 'f: 0.5', there it is "
            "'f: 0.001'");
  EXPECT_THAT(FirstDifference(kTraining, Replace(kTraining, "mlp", "cnn")),
              StartsWith("model: line 2 is 'name: \"cnn\"'"));
}

TEST(TextDifferenceTest, AFieldOfTheWholeNeedsNoPath) {
  EXPECT_EQ(
      FirstDifference(kTraining, Replace(kTraining, "seed: 1", "seed: 2")),
      "line 15 is 'seed: 2', there it is 'seed: 1'");
}

TEST(TextDifferenceTest, OneMayBeLonger) {
  EXPECT_EQ(FirstDifference("a: 1", "a: 1\nb: 2"),
            "line 2 is 'b: 2', there it is missing");
  EXPECT_EQ(FirstDifference("a: 1\nb: 2", "a: 1"),
            "line 2 is missing, there it is 'b: 2'");
}

TEST(TextDifferenceTest, TakesAnyText) {
  EXPECT_THAT(FirstDifference("  {\n }\n{", "\n\n\x01   {\n      x"),
              HasSubstr("line 1 is ''"));
  EXPECT_EQ(FirstDifference("", ""),
            "the fingerprints differ, the texts do not");
}

}  // namespace
}  // namespace muster
