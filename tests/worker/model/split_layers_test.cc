#include "worker/model/split_layers.h"

#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
    name: "a"
    type: "dense"
    attr { name: "units" i: 24 }
  }
  layer {
    name: "b"
    type: "dense"
    share: "a"
    attr { name: "units" i: 24 }
  }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

absl::Status Check(const std::string& layer_name, int parts, int devices = 0) {
  ModelSpec spec = ParseModel(kModel);
  const auto graph = ModelGraph::Create(spec);
  EXPECT_THAT(graph, IsOk());
  for (LayerSpec& layer : *spec.mutable_layer()) {
    if (layer.name() != layer_name) continue;
    layer.mutable_split()->set_parts(parts);
    for (int i = 0; i < devices; ++i) {
      layer.mutable_split()->add_devices("cpu:0");
    }
    return CheckSplit(layer, *graph);
  }
  return absl::NotFoundError(layer_name);
}

auto Refused(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

TEST(SplitLayersTest, WhatCannotBeDividedIsRefusedByName) {
  EXPECT_THAT(Check("conv", 2), IsOk());
  EXPECT_THAT(Check("logits", 3, 3), IsOk());
  EXPECT_THAT(Check("conv", 1), Refused("layer 'conv' (conv2d): split: parts "
                                        "must be 2 or more, found 1"));
  EXPECT_THAT(Check("conv", 4), Refused("its 6 output channels cannot be "
                                        "divided into 4 equal parts"));
  EXPECT_THAT(Check("conv", 2, 3), Refused("it has 2 parts and 3 devices"));
  EXPECT_THAT(Check("flatten", 2),
              Refused("layer 'flatten' (flatten): split: only dense layers"));
  EXPECT_THAT(Check("a", 2), Refused("it has its parameters with 'b'"));
  EXPECT_THAT(Check("b", 2), Refused("it has its parameters with 'a'"));
}

auto RunsOfConv(const std::vector<int>& runs) {
  return [runs](absl::string_view layer) {
    return layer == "conv" ? runs : std::vector<int>();
  };
}

TEST(SplitLayersTest, PartsMakeEqualRangesThatAreJoined) {
  const auto graph = ModelGraph::Create(ParseModel(kModel));
  ASSERT_THAT(graph, IsOk());
  auto program = LowerModel(*graph, /*batch_size=*/5, Phase::kTraining);
  ASSERT_THAT(program, IsOk());
  FuseActivations(&*program);
  const size_t ops = program->ops.size();
  const int whole = program->ops[0].dst;
  SplitLayers(RunsOfConv({1, 1, 1}), &*program);
  ASSERT_EQ(program->ops.size(), ops + 3);
  for (int part = 0; part < 3; ++part) {
    const ProgramOp& op = program->ops[part];
    EXPECT_EQ(op.part, part);
    EXPECT_EQ(op.parts, 3);
    EXPECT_EQ(std::get<Conv2dDesc>(op.desc).dst_channels, 2);
    EXPECT_TRUE(std::get<Conv2dDesc>(op.desc).relu);
    EXPECT_EQ(program->values[op.dst], Shape({5, 2, 2, 2}));
  }
  const ProgramOp& joined = program->ops[3];
  EXPECT_TRUE(std::holds_alternative<ConcatDesc>(joined.desc));
  EXPECT_EQ(joined.dst, whole);
  EXPECT_THAT(joined.srcs, ElementsAre(program->ops[0].dst, program->ops[1].dst,
                                       program->ops[2].dst));
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
  ASSERT_EQ(program->ops.size(), 10);
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
  EXPECT_TRUE(std::holds_alternative<ConcatDesc>(program->ops[6].desc));
  EXPECT_EQ(program->ops[6].name, "relu");
}

}  // namespace
}  // namespace muster
