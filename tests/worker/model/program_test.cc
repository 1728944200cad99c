#include "worker/model/program.h"

#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

constexpr char kLoss[] = "layer { name: 'loss' type: 'softmax_cross_entropy' }";
constexpr char kConv[] =
    "layer { name: 'conv' type: 'conv2d' attr { name: 'filters' i: 3 } "
    "attr { name: 'kernel' i: 3 } ";

Program Lower(const std::string& layers, Phase phase = Phase::kTraining,
              bool fuse = true) {
  const auto graph = ModelGraph::Create(
      ParseModel("input_shape: [2, 8, 8] " + layers +
                 "layer { name: 'flatten' type: 'flatten' } " + kLoss));
  EXPECT_THAT(graph, IsOk());
  auto program = LowerModel(*graph, 5, phase);
  EXPECT_THAT(program, IsOk());
  if (fuse) FuseActivations(&*program);
  return *program;
}

TEST(ProgramTest, LowersLayersToOperationsOnBatches) {
  const Program program =
      Lower(std::string(kConv) + "attr { name: 'activation' s: 'relu' } } ",
            Phase::kTraining, /*fuse=*/false);
  ASSERT_EQ(program.ops.size(), 4);
  EXPECT_TRUE(std::holds_alternative<Conv2dDesc>(program.ops[0].desc));
  EXPECT_TRUE(std::holds_alternative<ActivationDesc>(program.ops[1].desc));
  EXPECT_EQ(program.values[program.ops[1].dst], Shape({5, 3, 6, 6}));
  EXPECT_EQ(program.values[program.ops[2].dst], Shape({5, 108}));
  EXPECT_EQ(program.ops[3].dst, -1);
}

TEST(ProgramTest, LeavesDropoutOutAtInference) {
  const std::string dropout = "layer { name: 'd' type: 'dropout' } ";
  EXPECT_EQ(Lower(dropout, Phase::kTraining).ops.size(), 3);
  EXPECT_EQ(Lower(dropout, Phase::kInference).ops.size(), 2);
}

TEST(ProgramTest, SetsThePhase) {
  const Program program = Lower("", Phase::kInference);
  EXPECT_EQ(std::get<SoftmaxCrossEntropyDesc>(program.ops[1].desc).phase,
            Phase::kInference);
}

TEST(ProgramTest, FusesReluIntoTheConvolution) {
  const Program program =
      Lower(std::string(kConv) + "attr { name: 'activation' s: 'relu' } } ");
  ASSERT_EQ(program.ops.size(), 3);
  EXPECT_TRUE(std::get<Conv2dDesc>(program.ops[0].desc).relu);
  EXPECT_EQ(program.ops[1].srcs[0], program.ops[0].dst);
}

TEST(ProgramTest, FusesReluIntoTheFastPoolRatherThanTheConvolution) {
  const Program program =
      Lower(std::string(kConv) + "attr { name: 'activation' s: 'relu' } } " +
            "layer { name: 'pool' type: 'max_pool' } ");
  ASSERT_EQ(program.ops.size(), 4);
  EXPECT_FALSE(std::get<Conv2dDesc>(program.ops[0].desc).relu);
  EXPECT_TRUE(std::get<PoolDesc>(program.ops[1].desc).relu_before);
  EXPECT_EQ(program.ops[1].srcs[0], program.ops[0].dst);
}

TEST(ProgramTest, DoesNotFuseWhatAnotherLayerReads) {
  const Program program =
      Lower(std::string(kConv) + "} " +
            "layer { name: 'relu' type: 'relu' } "
            "layer { name: 'sum' type: 'add' input: 'relu' input: 'conv' } ");
  ASSERT_EQ(program.ops.size(), 5);
  EXPECT_FALSE(std::get<Conv2dDesc>(program.ops[0].desc).relu);
}

TEST(ProgramTest, DoesNotFuseALeakyRelu) {
  const Program program =
      Lower(std::string(kConv) + "} layer { name: 'leaky' type: 'leaky_relu' " +
            "attr { name: 'slope' f: 0.25 } } " +
            "layer { name: 'pool' type: 'max_pool' } ");
  ASSERT_EQ(program.ops.size(), 5);
  EXPECT_FALSE(std::get<Conv2dDesc>(program.ops[0].desc).relu);
  EXPECT_EQ(std::get<ActivationDesc>(program.ops[1].desc).slope, 0.25);
  EXPECT_FALSE(std::get<PoolDesc>(program.ops[2].desc).relu_before);
}

TEST(ProgramTest, RefusesImpossibleBatchSizes) {
  const auto graph =
      ModelGraph::Create(ParseModel(std::string("input_shape: [6] ") + kLoss));
  ASSERT_THAT(graph, IsOk());
  for (const int64_t batch_size : {int64_t{0}, int64_t{-1}, int64_t{1} << 60}) {
    EXPECT_THAT(LowerModel(*graph, batch_size, Phase::kTraining),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

}  // namespace
}  // namespace muster
