#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr char kTraining[] = R"pb(
  model {
    name: "tiny"
    input_shape: [ 6 ]
    layer {
      name: "logits"
      type: "dense"
      attr { name: "units" i: 3 }
    }
    layer { name: "loss" type: "softmax_cross_entropy" }
  }
  input {
    type: "synthetic"
    batch_size: 4
    synthetic_examples: 64
    synthetic_test_examples: 16
    synthetic_classes: 3
  }
  optimizer { name: "sgd" }
  stop { steps: 4 }
)pb";

constexpr char kCluster[] =
    R"({"ps": ["127.0.0.1:1", "127.0.0.1:2"], "worker": ["127.0.0.1:3"]})";

std::string Write(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

VerbResult Place(std::vector<std::string> flags) {
  flags.insert(
      flags.begin(),
      {"placement", "--training=" + Write("training.textproto", kTraining)});
  return RunVerb(flags, nullptr);
}

TEST(PlacementTest, PlacesOnThePsTasksOfACluster) {
  const VerbResult result =
      Place({"--cluster=" + Write("cluster.json", kCluster)});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, AllOf(ContainsRegex("logits/weights.*/job:ps/task:0"),
                                ContainsRegex("logits/bias.*/job:ps/task:1")));
}

TEST(PlacementTest, ShowsWhichRowsOfTablesAPsTaskHas) {
  EXPECT_THAT(Place({"--num_ps=3"}).out,
              HasSubstr("0 to 341     /job:ps/task:0\n"
                        "342 to 682   /job:ps/task:1\n"
                        "683 to 1023  /job:ps/task:2\n"));
  EXPECT_THAT(Place({"--num_ps=1025"}).out,
              HasSubstr("none         /job:ps/task:1024\n"));
}

TEST(PlacementTest, TakesOverridesAndANumberOfPsTasks) {
  const VerbResult result =
      Place({"--num_ps", "2", "--set", "placement=pinned", "--set",
             "placement.pin={pattern: \"logits.*\" ps_task: 1}"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  EXPECT_THAT(result.out, ContainsRegex("logits/weights.*/job:ps/task:1"));
}

TEST(PlacementTest, ShowsPieces) {
  const VerbResult result =
      Place({"--num_ps=2", "--set=model.logits.units=60000",
             "--set=input.synthetic_classes=60000"});
  EXPECT_EQ(result.exit_code, kExitDone) << result.error;
  // Six blocks, the last one shorter.
  EXPECT_THAT(
      result.out,
      AllOf(ContainsRegex("logits/weights.*task:0 \\[0, 196608\\)"),
            ContainsRegex("logits/weights.*task:1 \\[196608, 360000\\)")));
}

TEST(PlacementTest, RefusesMorePartsThanThereAreBlocks) {
  const VerbResult result =
      Place({"--num_ps=2", "--set=placement.partition.fixed.parts=2"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error,
              HasSubstr("wanted at most 1, the blocks of 65536 elements of the "
                        "largest parameter, 'logits/weights'"));
}

TEST(PlacementTest, NamesWhatIsMissingOrWrong) {
  VerbResult result = RunVerb({"placement"}, nullptr);
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("--training is missing"));
  result = Place({"--num_ps=0"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("--num_ps must be from 1 to "));
  result = Place({"--cluster=nowhere"});
  EXPECT_EQ(result.exit_code, kExitBadConfig);
  EXPECT_THAT(result.error, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace muster
