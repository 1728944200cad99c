// Every layer in layers.bzl is registered, can be built, and refuses what it
// should. Their mathematics is checked by
// tests/worker/model/gradient_check_test.cc.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Created = absl::StatusOr<std::unique_ptr<Layer>>;

// `settings` is a LayerSpec with attributes only.
Created Build(const std::string& type, const std::string& settings,
              const std::vector<Shape>& inputs) {
  LayerSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(settings, &spec));
  const auto found = LayerRegistry::Find(type);
  if (!found.ok()) return found.status();
  const auto attributes = Attributes::Create(found->attributes, spec.attr());
  if (!attributes.ok()) return attributes.status();
  return found->create(*attributes, inputs);
}

struct Example {
  std::string settings;
  std::vector<Shape> inputs;
  Shape output;
  size_t parameters = 0;
};

const std::map<std::string, Example>& Examples() {
  static const auto& examples = *new std::map<std::string, Example>{
      {"add", {"", {{2, 3, 4}, {2, 3, 4}}, {2, 3, 4}}},
      {"average_pool", {"", {{2, 5, 6}}, {2, 2, 3}}},
      {"batch_norm", {"", {{2, 3, 4}}, {2, 3, 4}, 4}},
      {"concat", {"", {{2, 3, 4}, {5, 3, 4}}, {7, 3, 4}}},
      {"conv2d",
       {"attr { name: 'filters' i: 4 } attr { name: 'kernel' i: 3 }",
        {{2, 5, 6}},
        {4, 3, 4},
        2}},
      {"dense", {"attr { name: 'units' i: 4 }", {{6}}, {4}, 2}},
      {"depthwise_conv2d",
       {"attr { name: 'kernel' i: 3 } attr { name: 'multiplier' i: 3 }",
        {{2, 5, 6}},
        {6, 3, 4},
        2}},
      {"dropout", {"", {{2, 3, 4}}, {2, 3, 4}}},
      {"flatten", {"", {{2, 3, 4}}, {24}}},
      {"global_average_pool", {"", {{2, 3, 4}}, {2}}},
      {"global_max_pool", {"", {{2, 3, 4}}, {2}}},
      {"mean_squared_error", {"", {{3}}, {3}}},
      {"sigmoid_cross_entropy", {"", {{3}}, {3}}},
      {"layer_norm", {"", {{2, 3, 4}}, {2, 3, 4}, 2}},
      {"leaky_relu", {"", {{2, 3, 4}}, {2, 3, 4}}},
      {"max_pool", {"", {{2, 5, 6}}, {2, 2, 3}}},
      {"relu", {"", {{2, 3, 4}}, {2, 3, 4}}},
      {"sigmoid", {"", {{6}}, {6}}},
      {"softmax_cross_entropy", {"", {{6}}, {6}}},
      {"tanh", {"", {{6}}, {6}}},
  };
  return examples;
}

TEST(LayersTest, EveryListedLayerIsRegistered) {
  ASSERT_THAT(LayerRegistry::Validate(), IsOk());
  const std::vector<std::string> listed = absl::StrSplit(LAYER_LIST, ',');
  EXPECT_THAT(LayerRegistry::Names(), testing::ElementsAreArray(listed));
}

TEST(LayersTest, EveryRegisteredLayerCanBeBuilt) {
  for (const std::string& type : LayerRegistry::Names()) {
    const auto example = Examples().find(type);
    ASSERT_NE(example, Examples().end()) << type << " has no example here";
    const Created layer =
        Build(type, example->second.settings, example->second.inputs);
    ASSERT_THAT(layer, IsOk()) << type;
    EXPECT_EQ((*layer)->output_shape(), example->second.output) << type;
    EXPECT_EQ((*layer)->parameters().size(), example->second.parameters)
        << type;
    EXPECT_FALSE((*layer)->Lower(2).empty()) << type;
  }
}

TEST(LayersTest, UnknownLayersGetTheNearestName) {
  EXPECT_THAT(LayerRegistry::Find("conv2"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("did you mean 'conv2d'")));
}

TEST(LayersTest, DescriptionHasEveryLayerAndAttribute) {
  const std::string text = DescribeLayers();
  for (const std::string& type : LayerRegistry::Names()) {
    EXPECT_THAT(text, HasSubstr(type + ": "));
    const absl::StatusOr<LayerType> layer = LayerRegistry::Find(type);
    ASSERT_THAT(layer, IsOk());
    for (const AttrDef& attr : layer->attributes) {
      EXPECT_THAT(text, HasSubstr("    " + attr.name + ": "));
    }
  }
}

TEST(LayersTest, BatchNormHasTrainableAndStateParameters) {
  const Created layer =
      Build("batch_norm", "attr { name: 'momentum' f: 0.75 }", {{3, 2, 2}});
  ASSERT_THAT(layer, IsOk());
  const auto parameters = (*layer)->parameters();
  EXPECT_EQ(parameters[0].kind, TRAINABLE);
  EXPECT_EQ(parameters[1].kind, TRAINABLE);
  EXPECT_EQ(parameters[2].name, "moving_mean");
  EXPECT_EQ(parameters[2].kind, STATE);
  EXPECT_EQ(parameters[3].kind, STATE);
  EXPECT_EQ(parameters[3].initializer.kind, Initializer::Kind::kOnes);
  EXPECT_EQ(parameters[1].decay, 0);
  EXPECT_EQ(parameters[2].decay, 0.25);
  EXPECT_EQ(parameters[3].decay, 0.25);
}

TEST(LayersTest, ConvolutionWithoutBiasHasWeightsOnly) {
  const Created layer =
      Build("conv2d",
            "attr { name: 'filters' i: 4 } attr { name: 'kernel' i: 3 } "
            "attr { name: 'use_bias' b: false }",
            {{2, 5, 6}});
  ASSERT_THAT(layer, IsOk());
  ASSERT_EQ((*layer)->parameters().size(), 1);
  EXPECT_EQ((*layer)->parameters()[0].shape, Shape({4, 2, 3, 3}));
}

// PyTorch's Conv2d(6, 4, 3, groups=2) and Conv2d(6, 12, 3, groups=6).
TEST(LayersTest, GroupedWeightsHaveTheChannelsOfOneGroup) {
  const std::string kernel = "attr { name: 'kernel' i: 3 } ";
  const Created grouped = Build("conv2d",
                                kernel +
                                    "attr { name: 'filters' i: 4 } "
                                    "attr { name: 'groups' i: 2 }",
                                {{6, 5, 5}});
  const Created depthwise =
      Build("depthwise_conv2d", kernel + "attr { name: 'multiplier' i: 2 }",
            {{6, 5, 5}});
  ASSERT_THAT(grouped, IsOk());
  ASSERT_THAT(depthwise, IsOk());
  EXPECT_EQ((*grouped)->parameters()[0].shape, Shape({4, 3, 3, 3}));
  EXPECT_EQ((*grouped)->parameters()[0].initializer.groups, 2);
  EXPECT_EQ((*depthwise)->parameters()[0].shape, Shape({12, 1, 3, 3}));
  EXPECT_EQ((*depthwise)->parameters()[1].shape, Shape({12}));
  EXPECT_EQ((*depthwise)->parameters()[0].initializer.groups, 6);
}

TEST(LayersTest, LayerNormHasAScaleAndAShiftOfEachValue) {
  const Created layer = Build("layer_norm", "", {{3, 2, 4}});
  ASSERT_THAT(layer, IsOk());
  for (const ParameterDef& parameter : (*layer)->parameters()) {
    EXPECT_EQ(parameter.shape, Shape({3, 2, 4})) << parameter.name;
  }
}

TEST(LayersTest, ActivationAddsAnOperation) {
  const std::string units = "attr { name: 'units' i: 4 } ";
  EXPECT_EQ((*Build("dense", units, {{6}}))->Lower(2).size(), 1);
  EXPECT_EQ(
      (*Build("dense", units + "attr { name: 'activation' s: 'tanh' }", {{6}}))
          ->Lower(2)
          .size(),
      2);
}

TEST(LayersTest, RefuseShapesThatTheyCannotTake) {
  const std::string units = "attr { name: 'units' i: 4 }";
  const struct {
    std::string type;
    std::string settings;
    std::vector<Shape> inputs;
    std::string message;
  } kCases[] = {
      {"dense", units, {{2, 3, 4}}, "add a flatten layer"},
      {"conv2d",
       "attr { name: 'filters' i: 4 } attr { name: 'kernel' i: 3 }",
       {{6}},
       "[channels, height, width], found [6]"},
      {"mean_squared_error", "", {{3, 2, 2}}, "one value a target"},
      {"conv2d",
       "attr { name: 'filters' i: 4 } attr { name: 'kernel' i: 3 } "
       "attr { name: 'groups' i: 4 }",
       {{6, 5, 5}},
       "groups must divide the channels, is 4 of 6 in and 4 out"},
      {"depthwise_conv2d",
       "attr { name: 'kernel' i: 3 }",
       {{6}},
       "[channels, height, width], found [6]"},
      {"max_pool", "", {{6}}, "found [6]"},
      {"global_average_pool", "", {{6}}, "found [6]"},
      {"add", "", {{2, 3, 4}, {2, 4, 3}}, "[2, 3, 4] and [2, 4, 3]"},
      {"concat", "", {{2, 3, 4}, {2, 3, 5}}, "[2, 3, 4] and [2, 3, 5]"},
      {"concat", "", {{4}, {4, 1, 1}}, "[4] and [4, 1, 1]"},
      {"softmax_cross_entropy", "", {{2, 3, 4}}, "[2, 3, 4]"},
      {"softmax_cross_entropy", "", {{1}}, "2 or more"},
      {"dense",
       "attr { name: 'units' i: 1073741824 }",
       {{int64_t{1} << 40}},
       "dense"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(
        Build(c.type, c.settings, c.inputs),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.type;
  }
}

TEST(LayersTest, RefuseAttributesOutOfRange) {
  const struct {
    std::string type;
    std::string settings;
    std::string name;
  } kCases[] = {
      {"dense", "", "units"},
      {"dense", "attr { name: 'units' i: 0 }", "units"},
      {"dense", "attr { name: 'units' i: 1 } attr { name: 'l2' f: -1 }", "l2"},
      {"dense",
       "attr { name: 'units' i: 1 } attr { name: 'activation' s: 'rleu' }",
       "activation"},
      {"dropout", "attr { name: 'rate' f: 1 }", "rate"},
      {"layer_norm", "attr { name: 'epsilon' f: 0 }", "epsilon"},
      {"leaky_relu", "attr { name: 'slope' f: 0 }", "slope"},
      {"leaky_relu", "attr { name: 'slope' f: 1.5 }", "slope"},
      {"batch_norm", "attr { name: 'epsilon' f: 0 }", "epsilon"},
      {"batch_norm", "attr { name: 'momentum' f: 1 }", "momentum"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(Build(c.type, c.settings, {{6}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.name)))
        << c.type << " " << c.settings;
  }
}

}  // namespace
}  // namespace muster
