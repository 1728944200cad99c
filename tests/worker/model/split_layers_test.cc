#include "worker/model/split_layers.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"
#include "worker/model/device_bytes.h"
#include "worker/model/plan_compiler.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

constexpr char kModel[] = R"pb(
  input_shape: [ 2, 4, 4 ]
  layer {
    name: "conv"
    type: "conv2d"
    attr { name: "filters" i: 6 }
    attr { name: "kernel" i: 3 }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

std::map<std::string, LayerSplit> RunsOfConv(const std::vector<int>& runs) {
  return {{"conv", {OUTPUTS, runs}}};
}

TEST(SplitLayersTest, PartsMakeEqualRangesThatAreJoined) {
  const auto graph = ModelGraph::Create(ParseModel(kModel));
  ASSERT_THAT(graph, IsOk());
  auto program = LowerModel(*graph, /*batch_size=*/5, Phase::kTraining);
  ASSERT_THAT(program, IsOk());
  FuseActivations(&*program);
  const size_t ops = program->ops.size();
  // Flatten is of parts, too, and then they are joined.
  const int whole = program->ops[1].dst;
  SplitLayers(RunsOfConv({1, 1, 1}), &*program);
  ASSERT_EQ(program->ops.size(), ops + 5);
  for (int part = 0; part < 3; ++part) {
    const ProgramOp& op = program->ops[part];
    EXPECT_EQ(op.part, part);
    EXPECT_EQ(op.parts, 3);
    EXPECT_EQ(std::get<Conv2dDesc>(op.desc).dst_channels, 2);
    EXPECT_TRUE(std::get<Conv2dDesc>(op.desc).relu);
    EXPECT_EQ(program->values[op.dst], Shape({5, 2, 2, 2}));
  }
  const ProgramOp& joined = program->ops[6];
  EXPECT_TRUE(std::holds_alternative<ConcatDesc>(joined.desc));
  EXPECT_EQ(joined.dst, whole);
  EXPECT_THAT(joined.srcs, ElementsAre(program->ops[3].dst, program->ops[4].dst,
                                       program->ops[5].dst));
}

constexpr char kNormModel[] = R"pb(
  input_shape: [ 2, 4, 4 ]
  layer {
    name: "conv"
    type: "conv2d"
    attr { name: "filters" i: 6 }
    attr { name: "kernel" i: 3 }
  }
  layer { name: "norm" type: "batch_norm" }
  layer { name: "relu" type: "relu" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

TEST(SplitLayersTest, BatchNormAndReluFollowTheirChannelsIntoUnevenParts) {
  const auto graph = ModelGraph::Create(ParseModel(kNormModel));
  ASSERT_THAT(graph, IsOk());
  auto program = LowerModel(*graph, /*batch_size=*/5, Phase::kTraining);
  ASSERT_THAT(program, IsOk());
  SplitLayers(RunsOfConv({2, 1}), &*program);
  ASSERT_EQ(program->ops.size(), 11);
  for (int i = 0; i < 6; ++i) {
    const ProgramOp& op = program->ops[i];
    const int part = i % 2;
    EXPECT_EQ(op.part, part * 2);
    EXPECT_EQ(op.num_parts, 2 - part);
    EXPECT_EQ(op.parts, 3);
    EXPECT_EQ(program->values[op.dst], Shape({5, part == 0 ? 4 : 2, 2, 2}));
    EXPECT_EQ(op.part_of, i < 2 ? "" : "conv");
  }
  EXPECT_EQ(std::get<BatchNormStep>(program->ops[2].desc).desc.channels, 4);
  EXPECT_TRUE(std::holds_alternative<ActivationDesc>(program->ops[5].desc));
  EXPECT_EQ(program->values[program->ops[6].dst], Shape({5, 16}));
  EXPECT_TRUE(std::holds_alternative<ConcatDesc>(program->ops[8].desc));
  EXPECT_EQ(program->ops[8].name, "flatten");
}

// Two dense layers with a ReLU each.
constexpr char kPairModel[] = R"pb(
  input_shape: [ 7 ]
  layer {
    name: "first"
    type: "dense"
    attr { name: "units" i: 32 }
    attr { name: "activation" s: "relu" }
  }
  layer {
    name: "second"
    type: "dense"
    attr { name: "units" i: 3 }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

TEST(SplitLayersTest, APairMakesSummandsOfWhatLiesInParts) {
  const auto graph = ModelGraph::Create(ParseModel(kPairModel));
  ASSERT_THAT(graph, IsOk());
  auto program = LowerModel(*graph, /*batch_size=*/5, Phase::kTraining);
  ASSERT_THAT(program, IsOk());
  FuseActivations(&*program);
  const int whole = program->ops[1].dst;
  SplitLayers({{"first", {OUTPUTS, {3, 1}}}, {"second", {INPUTS, {}}}},
              &*program);
  ASSERT_EQ(program->ops.size(), 7);
  for (int i = 0; i < 2; ++i) {
    const ProgramOp& op = program->ops[2 + i];
    EXPECT_THAT(op.srcs, ElementsAre(program->ops[i].dst));
    EXPECT_EQ(op.part_of, "first");
    EXPECT_EQ(op.part, i * 3);
    EXPECT_EQ(op.part_dim, 1);
    const auto& desc = std::get<DenseDesc>(op.desc);
    EXPECT_EQ(desc.src_features, i == 0 ? 24 : 8);
    EXPECT_EQ(desc.dst_features, 3);
    EXPECT_EQ(desc.has_bias, i == 0);
    EXPECT_FALSE(desc.relu);
    EXPECT_EQ(op.parameters.size(), i == 0 ? 2 : 1);
  }
  EXPECT_THAT(program->ops[4].srcs,
              ElementsAre(program->ops[2].dst, program->ops[3].dst));
  EXPECT_TRUE(std::holds_alternative<AddDesc>(program->ops[4].desc));
  EXPECT_TRUE(std::holds_alternative<ActivationDesc>(program->ops[5].desc));
  EXPECT_EQ(program->ops[5].dst, whole);
}

// The bytes that devices send to each other in a step of the pair's model,
// whose second layer is divided by `by`.
int64_t BytesSent(SplitBy by) {
  const auto graph = ModelGraph::Create(ParseModel(kPairModel));
  auto program = LowerModel(*graph, /*batch_size=*/64, Phase::kTraining);
  LayerSplit second = {by, {}};
  if (by == OUTPUTS) second.runs = {2, 1};
  SplitLayers({{"first", {OUTPUTS, {1, 1}}}, {"second", second}}, &*program);
  for (ProgramOp& op : program->ops) op.device = op.part > 0 ? 1 : 0;
  const auto backend = MakeBackend("ref");
  const auto plan = CompilePlan(*program, graph->parameters(), PlanOptions(),
                                {backend.get(), backend.get()});
  EXPECT_THAT(plan, IsOk());
  const std::vector<int64_t> bytes = SentBytes(*plan);
  return bytes[0] + bytes[1];
}

// Forward the 7 inputs, and each way what the second layer makes; half of the
// first layer's parameters and their gradients, and the second's.
TEST(SplitLayersTest, BetweenTheLayersOfAPairNothingIsSent) {
  const int64_t first = 64 * 7 + 2 * (16 * 7 + 16);
  EXPECT_EQ(BytesSent(INPUTS), (first + 64 * 2 * 3 + 2 * 16 * 3) * 4);
  // By outputs also all of the 32 channels to a device, and half of them back.
  EXPECT_EQ(BytesSent(OUTPUTS),
            (first + 64 * 2 * (32 + 16 + 1) + 2 * (32 + 1)) * 4);
}

}  // namespace
}  // namespace muster
