#include "worker/model/split_check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using ::testing::AllOf;
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
  layer { name: "pool" type: "max_pool" }
  layer { name: "flatten" type: "flatten" }
  layer {
    name: "hidden"
    type: "dense"
    attr { name: "units" i: 24 }
  }
  layer { name: "norm" type: "layer_norm" }
  layer {
    name: "normed"
    type: "dense"
    attr { name: "units" i: 24 }
  }
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
    name: "c"
    type: "dense"
    attr { name: "units" i: 24 }
  }
  layer { name: "sum" type: "add" input: "b" input: "c" }
  layer {
    name: "logits"
    type: "dense"
    attr { name: "units" i: 3 }
  }
  layer { name: "loss" type: "softmax_cross_entropy" }
)pb";

// A model of which layers are divided.
class Divided {
 public:
  Divided& Split(const std::string& layer_name, const std::string& split) {
    for (LayerSpec& layer : *spec_.mutable_layer()) {
      if (layer.name() != layer_name) continue;
      *layer.mutable_split() =
          ParseModel("layer { split { " + split + " } }").layer(0).split();
    }
    return *this;
  }
  absl::Status Check() const {
    const auto graph = ModelGraph::Create(spec_);
    EXPECT_THAT(graph, IsOk());
    return CheckSplits(spec_, *graph);
  }

 private:
  ModelSpec spec_ = ParseModel(kModel);
};

absl::Status Check(const std::string& layer, const std::string& split) {
  return Divided().Split(layer, split).Check();
}

auto Refused(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

TEST(SplitCheckTest, WhatCannotBeDividedIsRefusedByName) {
  EXPECT_THAT(Check("conv", "parts: 2"), IsOk());
  EXPECT_THAT(Check("logits", "parts: 3 devices: ['cpu:0', 'cpu:0', 'cpu:0']"),
              IsOk());
  EXPECT_THAT(Check("conv", "parts: 1"),
              Refused("layer 'conv' (conv2d): split: parts must be 2 or more, "
                      "found 1"));
  EXPECT_THAT(Check("conv", "parts: 4"),
              Refused("its 6 output channels cannot be divided into 4 equal "
                      "parts"));
  EXPECT_THAT(Check("conv", "parts: 2 devices: 'cpu:0'"),
              Refused("it has 2 parts and 1 devices"));
  EXPECT_THAT(Check("flatten", "parts: 2"),
              Refused("layer 'flatten' (flatten): split: only dense layers"));
  EXPECT_THAT(Check("a", "parts: 2"),
              Refused("it has its parameters with 'b'"));
  EXPECT_THAT(Check("b", "parts: 2"),
              Refused("it has its parameters with 'a'"));
}

TEST(SplitCheckTest, InputsFollowTheOutputsOfALayerBefore) {
  const std::string devices = "devices: ['cpu:0', 'cpu:1']";
  EXPECT_THAT(Divided()
                  .Split("conv", "parts: 2 " + devices)
                  .Split("hidden", "parts: 2 by: INPUTS")
                  .Check(),
              IsOk());
  EXPECT_THAT(
      Divided()
          .Split("conv", "parts: 2 " + devices)
          .Split("hidden", "parts: 2 by: INPUTS devices: ['/cpu:0', 'cpu:1']")
          .Check(),
      IsOk());
}

TEST(SplitCheckTest, InputsThatAreNotInSuchPartsAreRefusedByName) {
  const auto hidden = [](const std::string& conv, const std::string& split) {
    return Divided().Split("conv", conv).Split("hidden", split).Check();
  };
  EXPECT_THAT(hidden("parts: 2", "parts: 4 by: INPUTS"),
              Refused("its 6 input channels cannot be divided into 4 equal"));
  EXPECT_THAT(hidden("parts: 2", "parts: 3 by: INPUTS"),
              Refused("it has 3 parts, 'conv' has 2"));
  EXPECT_THAT(hidden("parts: 2 devices: ['cpu:0', 'cpu:1']",
                     "parts: 2 by: INPUTS devices: ['cpu:1', 'cpu:0']"),
              Refused("its parts are on cpu:1,cpu:0, those of 'conv' on "
                      "cpu:0,cpu:1"));
  EXPECT_THAT(Check("conv", "parts: 2 by: INPUTS"),
              AllOf(Refused("layer 'conv' (conv2d): split: by INPUTS"),
                    Refused("the model's input is whole")));
  EXPECT_THAT(Divided()
                  .Split("hidden", "parts: 2")
                  .Split("a", "parts: 2 by: INPUTS")
                  .Check(),
              Refused("it has its parameters with 'b'"));
  EXPECT_THAT(Divided()
                  .Split("hidden", "parts: 2")
                  .Split("logits", "parts: 2 by: INPUTS")
                  .Check(),
              Refused("'sum' (add) is not in parts"));
  EXPECT_THAT(Check("c", "parts: 2 by: INPUTS"),
              Refused("'b' is read by 2 layers"));
  EXPECT_THAT(Divided()
                  .Split("hidden", "parts: 2")
                  .Split("normed", "parts: 2 by: INPUTS")
                  .Check(),
              Refused("'norm' (layer_norm) is not in parts"));
}

}  // namespace
}  // namespace muster
