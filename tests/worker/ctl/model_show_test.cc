#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A convolution of 3x3 in a block that is used twice, the second time with the
// parameters of the first.
constexpr char kTraining[] = R"(
  model {
    name: "tiny"
    input_shape: [2, 4, 4]
    block {
      name: "conv"
      parameter { name: "filters" }
      layer {
        type: "conv2d"
        attr { name: "filters" parameter: "filters" }
        attr { name: "kernel" i: 3 }
        attr { name: "padding" s: "same" }
      }
      layer { name: "_act" type: "relu" }
    }
    layer { name: "a" type: "conv" attr { name: "filters" i: 2 } }
    layer {
      name: "b" type: "conv2d" share: "a"
      attr { name: "filters" i: 2 }
      attr { name: "kernel" i: 3 }
      attr { name: "padding" s: "same" }
    }
    layer { name: "flatten" type: "flatten" }
    layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input { type: "synthetic" batch_size: 4 synthetic_examples: 64
          synthetic_classes: 3 }
  optimizer { name: "sgd" }
  stop { steps: 4 }
)";

VerbResult Show(const std::vector<std::string>& flags,
                const std::string& training = kTraining) {
  const std::string path = testing::TempDir() + "/training.textproto";
  std::ofstream(path) << training;
  std::vector<std::string> args = {"model", "show", "--training=" + path};
  args.insert(args.end(), flags.begin(), flags.end());
  return RunVerb(args, nullptr);
}

TEST(ModelShowTest, PrintsTheExpandedGraph) {
  const VerbResult result = Show({});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  // 3 x 3 x 2 x 2 weights and 2 biases; 2 x 18 operations each of 32 values.
  EXPECT_THAT(
      result.out,
      AllOf(ContainsRegex("a +conv2d +input +\\[2, 4, 4\\] +38 +1152\n"),
            ContainsRegex("a_act +relu +a +\\[2, 4, 4\\] +0 +0\n"),
            ContainsRegex("b +conv2d +a_act +\\[2, 4, 4\\] +0 +1152\n"),
            ContainsRegex("logits +dense +flatten +\\[3\\] +99 +192\n"),
            ContainsRegex("all +137 +2496\n")));
}

// Half of the weights, and half of the operations.
TEST(ModelShowTest, CountsTheChannelsOfOneGroup) {
  const VerbResult result = Show(
      {}, absl::StrReplaceAll(
              kTraining, {{"share: \"a\"", "attr { name: \"groups\" i: 2 }"}}));
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              ContainsRegex("b +conv2d +a_act +\\[2, 4, 4\\] +20 +576\n"));
}

TEST(ModelShowTest, MarksWhatIsFrozen) {
  const VerbResult result =
      Show({"--set=model.a.freeze=true", "--set=model.freeze_pattern=.*/bias"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out,
              AllOf(ContainsRegex("FLOPs +frozen\n"),
                    ContainsRegex("a +conv2d [^\n]* 38 +1152 +yes\n"),
                    ContainsRegex("a_act [^\n]* 0 +0 +\n"),
                    ContainsRegex("b +conv2d [^\n]* 0 +1152 +yes\n"),
                    ContainsRegex("logits [^\n]* 99 +192 +in part\n"),
                    ContainsRegex("all +137 +2496 +41\n")));
  EXPECT_THAT(
      Show({"--set=model.a.freeze=true", "--set=model.freeze_pattern=a,x"})
          .error,
      HasSubstr("model.freeze_pattern 'x'"));
}

TEST(ModelShowTest, SetsWhatAUseGivesItsBlock) {
  const VerbResult result =
      Show({"--set=model.a.filters=4", "--set=model.b.filters=4",
            "--set=model.b.share="});
  EXPECT_NE(result.exit_code, kExitDone);
  EXPECT_THAT(result.error, HasSubstr("share"));
  EXPECT_THAT(Show({"--set=model.a.filters=4"}).error, HasSubstr("'b'"));
}

TEST(ModelShowTest, WantsATraining) {
  const VerbResult result = RunVerb({"model", "show"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("--training is missing"));
}

TEST(ModelShowTest, NamesTheDevicesOfLayers) {
  EXPECT_THAT(Show({}).out, testing::Not(HasSubstr("device")));
  const VerbResult result =
      Show({"--set=model.a.device=/gpu:0", "--set=model.flatten.device=cpu:3",
            "--set=model.device_rule={pattern: 'b|logits' device: 'CPU:1'}"});
  EXPECT_THAT(result.out, AllOf(ContainsRegex("FLOPs +device\n"),
                                ContainsRegex("\na_act [^\n]* cuda:0\n"),
                                ContainsRegex("\nb [^\n]* cpu:1\n"),
                                ContainsRegex("\nflatten [^\n]* 0 +cpu:3\n")));
}

TEST(ModelShowTest, NamesThePartsOfLayers) {
  const std::string parts = "--set=model.logits.split.parts=";
  EXPECT_THAT(Show({parts + "3"}).out,
              ContainsRegex("\nlogits [^\n]* in 3 parts\n"));
  EXPECT_THAT(Show({"--set=model.b.split.parts=2", parts + "2",
                    "--set=model.logits.split.by=INPUTS"},
                   absl::StrReplaceAll(kTraining, {{"share: \"a\"", ""}}))
                  .out,
              ContainsRegex("\nlogits [^\n]* in 2 parts by inputs\n"));
  EXPECT_THAT(Show({parts + "2"}).error,
              HasSubstr("layer 'logits' (dense): split: its 3 output channels "
                        "cannot be divided into 2 equal parts"));
}

}  // namespace
}  // namespace muster
