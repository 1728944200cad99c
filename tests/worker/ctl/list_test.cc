#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ListTest, NamesEveryKindWithItsAttributes) {
  const VerbResult result = RunVerb({"list"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(
      result.out,
      AllOf(StartsWith("Layers\n"), ContainsRegex("\n  conv2d: "),
            HasSubstr("share: \"conv1\""), HasSubstr("\n\nOptimizers\n"),
            HasSubstr("\n  adam\n    "), HasSubstr("\n\nData sets\n  cifar: "),
            HasSubstr("\n\nStages\n  cast: "), HasSubstr("\n\nBackends\n")));
}

TEST(ListTest, NamesOneKindAlone) {
  const VerbResult result = RunVerb({"list", "codecs"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, AllOf(StartsWith("Codecs\n"), HasSubstr("bf16"),
                                Not(HasSubstr("Layers"))));
}

TEST(ListTest, SaysWithThePlacementsHowParametersAreCut) {
  const VerbResult result = RunVerb({"list", "placements"}, nullptr);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\n  random: "),
                                HasSubstr("\n  placement.partition cuts ")));
}

TEST(ListTest, NamesAKindOfTwoWords) {
  const VerbResult result = RunVerb({"list", "data_sets"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("Data sets\n"), HasSubstr("\n  synthetic: ")));
}

TEST(ListTest, AMisspeltKindGetsTheNearest) {
  const VerbResult result = RunVerb({"list", "layer"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error,
              HasSubstr("unknown kind 'layer'; did you mean 'layers'?"));
}

TEST(ListTest, RefusesGpuFlagsThatMakeNoSense) {
  for (const char* const flag :
       {"--gpu_memory_fraction=half", "--gpu_virtual_devices=0"}) {
    const VerbResult result = RunVerb({"list", flag}, nullptr);
    EXPECT_EQ(result.exit_code, kExitBadConfig) << flag;
    EXPECT_THAT(result.error, HasSubstr("gpu_"));
  }
}

}  // namespace
}  // namespace muster
