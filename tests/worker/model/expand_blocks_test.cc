#include "worker/model/expand_blocks.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kBlocks[] = R"(
  block {
    name: "conv_norm"
    parameter { name: "filters" }
    parameter { name: "kernel" i: 1 }
    layer {
      type: "conv2d"
      attr { name: "filters" parameter: "filters" }
      attr { name: "kernel" parameter: "kernel" }
    }
    layer { name: "_norm" type: "batch_norm" }
  }
  block {
    name: "residual"
    parameter { name: "width" }
    layer {
      name: "first" type: "conv_norm"
      attr { name: "filters" parameter: "width" }
      attr { name: "kernel" i: 3 }
    }
    layer {
      name: "second" type: "conv2d" share: "other"
      attr { name: "filters" parameter: "width" }
    }
    layer { name: "sum" type: "add" input: "second" input: "input" }
  }
)";

ModelSpec Parse(const std::string& text) {
  ModelSpec model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

std::string With(const std::string& layers) { return kBlocks + layers; }

// The error of a model with these layers after kBlocks.
absl::Status ErrorOf(const std::string& text) {
  ModelSpec model = Parse(text);
  const ModelSpec before = model;
  const absl::Status status = ExpandBlocks(&model);
  EXPECT_TRUE(MessageDifferencer::Equals(model, before));
  return status;
}

TEST(ExpandBlocksTest, PutsTheLayersOfEachUseInItsPlace) {
  ModelSpec model = Parse(With(R"(
    layer {
      name: "stem" type: "conv_norm" attr { name: "filters" i: 8 }
    }
    layer { name: "a" type: "residual" attr { name: "width" i: 8 } }
    layer {
      name: "b" type: "residual" input: "stem" attr { name: "width" i: 4 }
    }
    layer { name: "join" type: "concat" input: "a" input: "b" }
  )"));
  ASSERT_THAT(ExpandBlocks(&model), IsOk());
  const auto residual = [](const std::string& use, const std::string& input,
                           int width) {
    const std::string filters =
        "attr { name: 'filters' i: " + std::to_string(width) + " }";
    return "layer { name: '" + use + "/first' type: 'conv2d' input: '" + input +
           "'" + filters + " attr { name: 'kernel' i: 3 } }" +
           "layer { name: '" + use +
           "/first_norm' type: 'batch_norm' input: '" + use + "/first' }" +
           "layer { name: '" + use + "/second' type: 'conv2d' share: '" + use +
           "/other' input: '" + use + "/first_norm' " + filters + "}" +
           "layer { name: '" + use + "/sum' type: 'add' input: '" + use +
           "/second' input: '" + input + "' }";
  };
  const ModelSpec wanted = Parse(R"(
    layer {
      name: "stem" type: "conv2d" input: "input"
      attr { name: "filters" i: 8 } attr { name: "kernel" i: 1 }
    }
    layer { name: "stem_norm" type: "batch_norm" input: "stem" }
  )" + residual("a", "stem_norm", 8) +
                                 residual("b", "stem_norm", 4) + R"(
    layer { name: "join" type: "concat" input: "a/sum" input: "b/sum" }
  )");
  EXPECT_TRUE(MessageDifferencer::Equals(model, wanted)) << model.DebugString();
}

TEST(ExpandBlocksTest, AFrozenUseFreezesItsLayers) {
  ModelSpec model = Parse(R"pb(
    block {
      name: "inner"
      layer { name: "x" type: "relu" }
      layer { name: "y" type: "relu" freeze: true }
    }
    block {
      name: "outer"
      layer { name: "in" type: "inner" }
    }
    layer { name: "a" type: "outer" freeze: true }
    layer { name: "b" type: "outer" }
  )pb");
  ASSERT_THAT(ExpandBlocks(&model), IsOk());
  ASSERT_EQ(model.layer_size(), 4);
  EXPECT_TRUE(model.layer(0).freeze());
  EXPECT_TRUE(model.layer(1).freeze());
  EXPECT_FALSE(model.layer(2).freeze());
  EXPECT_TRUE(model.layer(3).freeze());
}

TEST(ExpandBlocksTest, AUseGivesItsDeviceToLayersThatNameNone) {
  ModelSpec model = Parse(R"pb(
    block {
      name: "pair"
      layer { name: "x" type: "relu" }
      layer { name: "y" type: "relu" device: "cpu:2" }
    }
    layer { name: "a" type: "pair" device: "cpu:1" }
    layer { name: "b" type: "pair" }
  )pb");
  ASSERT_THAT(ExpandBlocks(&model), IsOk());
  ASSERT_EQ(model.layer_size(), 4);
  EXPECT_EQ(model.layer(0).device(), "cpu:1");
  EXPECT_EQ(model.layer(1).device(), "cpu:2");
  EXPECT_EQ(model.layer(2).device(), "");
  EXPECT_EQ(model.layer(3).device(), "cpu:2");
}

TEST(ExpandBlocksTest, LeavesAModelWithoutBlocksAlone) {
  ModelSpec model = Parse("layer { name: 'a' type: 'relu' }");
  const ModelSpec before = model;
  ASSERT_THAT(ExpandBlocks(&model), IsOk());
  EXPECT_TRUE(MessageDifferencer::Equals(model, before));
}

TEST(ExpandBlocksTest, NamesTheMistakeInAUse) {
  EXPECT_THAT(ErrorOf(With("layer { name: 'a' type: 'conv_nrm' }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean 'conv_norm'")));
  EXPECT_THAT(ErrorOf(With("layer { name: 'a' type: 'conv_norm' }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("layer 'a' (conv_norm)"),
                             HasSubstr("parameter 'filters' has no value"))));
  EXPECT_THAT(ErrorOf(With("layer { name: 'a' type: 'conv_norm'"
                           "  attr { name: 'filter' i: 1 } }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean 'filters'")));
  EXPECT_THAT(
      ErrorOf(With("layer { type: 'conv_norm'"
                   "  attr { name: 'filters' i: 1 } }")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a name")));
  EXPECT_THAT(
      ErrorOf(With("layer { name: 'a' type: 'conv_norm' share: 'b'"
                   "  attr { name: 'filters' i: 1 } }")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot share")));
  EXPECT_THAT(ErrorOf(With("layer { name: 'a' type: 'relu' }"
                           "layer { name: 'a' type: 'relu' }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is there twice")));
}

TEST(ExpandBlocksTest, NamesTheMistakeInABlock) {
  EXPECT_THAT(
      ErrorOf("block { layer { type: 'relu' } }"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has no name")));
  EXPECT_THAT(ErrorOf("block { name: 'relu' layer { type: 'relu' } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("name of a type of layer")));
  EXPECT_THAT(ErrorOf("block { name: 'b' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("block 'b' has no layers")));
  EXPECT_THAT(ErrorOf("block { name: 'b' parameter { name: 'p' i: 1 }"
                      "  layer { name: 'x' type: 'relu'"
                      "    attr { name: 'a' parameter: 'q' } } }"
                      "layer { name: 'use' type: 'b' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("block 'b', layer 'x' (relu)"),
                             HasSubstr("unknown parameter 'q'"))));
  EXPECT_THAT(ErrorOf("block { name: 'b'"
                      "  layer { name: 'x' type: 'relu' input: 'outside' } }"
                      "layer { name: 'outside' type: 'relu' }"
                      "layer { name: 'use' type: 'b' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("unknown input 'outside'")));
}

TEST(ExpandBlocksTest, EndsWithBlocksThatUseThemselves) {
  EXPECT_THAT(ErrorOf("block { name: 'b' layer { name: 'x' type: 'b' } }"
                      "layer { name: 'use' type: 'b' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot use itself")));
}

TEST(ExpandBlocksTest, RefusesInputsThatMultiply) {
  EXPECT_THAT(ErrorOf("block { name: 'b' layer { name: 'x' type: 'b'"
                      "  input: ['input', 'input', 'input', 'input'] } }"
                      "layer { name: 'use' type: 'b' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reads more than 1000 layers")));
}

TEST(ExpandBlocksTest, RefusesMoreLayersThanAModelMayHave) {
  std::string text = "block { name: 'b0' layer { type: 'relu' } }";
  for (int i = 1; i < 6; ++i) {
    text += "block { name: 'b" + std::to_string(i) + "'";
    for (int k = 0; k < 12; ++k) {
      text += " layer { name: '" + std::to_string(k) + "' type: 'b" +
              std::to_string(i - 1) + "' }";
    }
    text += "}";
  }
  EXPECT_THAT(ErrorOf(text + "layer { name: 'use' type: 'b5' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 100000 layers")));
}

}  // namespace
}  // namespace muster
