#include "worker/model/model_graph.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/model/test_models.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLoss[] = "layer { name: 'loss' type: 'softmax_cross_entropy' }";

std::string Flat(const std::string& layers) {
  return "input_shape: [6] " + layers + kLoss;
}
std::string Image(const std::string& layers) {
  return "input_shape: [2, 8, 8] " + layers + kLoss;
}

void ExpectRefused(const std::string& text,
                   const testing::Matcher<std::string>& message) {
  EXPECT_THAT(ModelGraph::Create(ParseModel(text)),
              StatusIs(absl::StatusCode::kInvalidArgument, message))
      << text;
}

TEST(ModelGraphTest, InfersShapesAndNamesParameters) {
  const auto graph = ModelGraph::Create(ParseModel(Image(
      "layer { name: 'conv1' type: 'conv2d' attr { name: 'filters' i: 3 } "
      "attr { name: 'kernel' i: 3 } } "
      "layer { name: 'pool' type: 'max_pool' } "
      "layer { name: 'flatten' type: 'flatten' } "
      "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 4 } } ")));
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->nodes()[1].shape, Shape({3, 6, 6}));
  EXPECT_EQ(graph->nodes()[2].shape, Shape({3, 3, 3}));
  EXPECT_EQ(graph->num_outputs(), 4);
  std::vector<std::string> names;
  for (const auto& p : graph->parameters()) names.push_back(p.name);
  EXPECT_THAT(names, ElementsAre("conv1/weights", "conv1/bias",
                                 "logits/weights", "logits/bias"));
  EXPECT_EQ(graph->parameters()[2].shape, Shape({4, 27}));
}

TEST(ModelGraphTest, RefusesBadInputShapes) {
  ExpectRefused(kLoss, HasSubstr("model.input_shape"));
  ExpectRefused(std::string("input_shape: [2, 0, 3] ") + kLoss,
                AllOf(HasSubstr("all positive"), HasSubstr("[2, 0, 3]")));
  ExpectRefused(std::string("input_shape: [-4] ") + kLoss,
                HasSubstr("model.input_shape"));
  ExpectRefused(std::string("input_shape: [4, 4] ") + kLoss,
                HasSubstr("[4, 4]"));
  ExpectRefused(
      std::string("input_shape: [4611686018427387904, 8, 8] ") + kLoss,
      HasSubstr("model.input_shape"));
}

TEST(ModelGraphTest, RefusesAnEmptyModel) {
  ExpectRefused("input_shape: [4]", HasSubstr("no layers"));
}

TEST(ModelGraphTest, RefusesBadNames) {
  ExpectRefused(Flat("layer { type: 'relu' } "),
                AllOf(HasSubstr("model.layer[0]"), HasSubstr("no name")));
  ExpectRefused(Flat("layer { name: 'a' type: 'relu' } "
                     "layer { name: 'a' type: 'relu' } "),
                AllOf(HasSubstr("model.layer[1]"), HasSubstr("'a'"),
                      HasSubstr("model.layer[0]")));
  ExpectRefused(Flat("layer { name: 'input' type: 'relu' } "),
                HasSubstr("the model's input"));
  ExpectRefused(Flat("layer { name: 'a b' type: 'relu' } "),
                HasSubstr("'a b'"));
}

TEST(ModelGraphTest, OffersTheNearestLayerType) {
  ExpectRefused(Flat("layer { name: 'a' type: 'dens' } "),
                AllOf(HasSubstr("'a'"), HasSubstr("'dens'"),
                      HasSubstr("did you mean 'dense'")));
}

TEST(ModelGraphTest, OffersTheNearestAttribute) {
  ExpectRefused(
      Flat("layer { name: 'a' type: 'dense' attr { name: 'unit' i: 4 } } "),
      AllOf(HasSubstr("'a'"), HasSubstr("units")));
}

TEST(ModelGraphTest, RefusesZeroAndNegativeSizes) {
  for (const char* value : {"0", "-3"}) {
    ExpectRefused(Flat(std::string("layer { name: 'a' type: 'dense' attr { "
                                   "name: 'units' i: ") +
                       value + " } } "),
                  AllOf(HasSubstr("'a'"), HasSubstr("units")));
  }
}

TEST(ModelGraphTest, RefusesUnknownAndLaterInputs) {
  ExpectRefused(Flat("layer { name: 'first' type: 'relu' } "
                     "layer { name: 'b' type: 'relu' input: 'frist' } "),
                AllOf(HasSubstr("'b'"), HasSubstr("did you mean 'first'")));
  ExpectRefused(Flat("layer { name: 'a' type: 'relu' input: 'b' } "
                     "layer { name: 'b' type: 'relu' input: 'a' } "),
                AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("cycles")));
}

TEST(ModelGraphTest, RefusesWrongNumbersOfInputs) {
  ExpectRefused(Flat("layer { name: 'a' type: 'add' } "),
                AllOf(HasSubstr("'a'"), HasSubstr("at least 2")));
  ExpectRefused(
      Flat("layer { name: 'a' type: 'relu' input: 'input' input: 'input' } "),
      AllOf(HasSubstr("'a'"), HasSubstr("found 2")));
}

TEST(ModelGraphTest, NamesBothLayersWhoseShapesCannotConnect) {
  ExpectRefused(
      Image("layer { name: 'pool' type: 'max_pool' } "
            "layer { name: 'fc' type: 'dense' attr { name: 'units' i: 4 } } "),
      AllOf(HasSubstr("'fc'"), HasSubstr("'pool' [2, 4, 4]"),
            HasSubstr("flatten")));
  ExpectRefused(
      Image("layer { name: 'pool' type: 'max_pool' } "
            "layer { name: 'sum' type: 'add' input: 'pool' input: 'input' } "),
      AllOf(HasSubstr("'sum'"), HasSubstr("'pool' [2, 4, 4]"),
            HasSubstr("'input' [2, 8, 8]")));
  ExpectRefused(
      Image("layer { name: 'big' type: 'max_pool' attr { name: 'kernel' i: 9 "
            "} } "),
      AllOf(HasSubstr("'big'"), HasSubstr("'input' [2, 8, 8]")));
}

TEST(ModelGraphTest, RefusesOutputsThatNobodyReads) {
  ExpectRefused(Flat("layer { name: 'dead' type: 'relu' } "
                     "layer { name: 'a' type: 'relu' input: 'input' } "),
                HasSubstr("'dead'"));
}

TEST(ModelGraphTest, NeedsTheLossAtTheEndAndOnlyThere) {
  ExpectRefused("input_shape: [6] layer { name: 'a' type: 'relu' }",
                AllOf(HasSubstr("'a'"), HasSubstr("must be a loss")));
  ExpectRefused(Flat("layer { name: 'early' type: 'softmax_cross_entropy' } "),
                AllOf(HasSubstr("'early'"), HasSubstr("must be the last")));
}

TEST(ModelGraphTest, SharesParameters) {
  const auto graph = ModelGraph::Create(ParseModel(
      Flat("layer { name: 'a' type: 'dense' attr { name: 'units' i: 6 } } "
           "layer { name: 'b' type: 'dense' attr { name: 'units' i: 6 } "
           "share: 'a' } ")));
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->parameters().size(), 2);
  EXPECT_THAT(graph->nodes()[2].parameters, ElementsAre(0, 1));
}

TEST(ModelGraphTest, RefusesToShareOtherShapesAndNamesBothLayers) {
  const std::string first =
      "layer { name: 'a' type: 'dense' attr { name: 'units' i: 6 } } ";
  ExpectRefused(Flat(first + "layer { name: 'b' type: 'dense' share: 'a' "
                             "attr { name: 'units' i: 5 } } "),
                AllOf(HasSubstr("'b'"), HasSubstr("[5, 6]"), HasSubstr("'a'"),
                      HasSubstr("[6, 6]")));
  ExpectRefused(Flat(first + "layer { name: 'b' type: 'relu' share: 'a' } "),
                AllOf(HasSubstr("'b'"), HasSubstr("'a'")));
  ExpectRefused(Flat(first + "layer { name: 'b' type: 'dense' share: 'x' "
                             "attr { name: 'units' i: 5 } } "),
                AllOf(HasSubstr("'b'"), HasSubstr("'x'")));
}

TEST(ModelGraphTest, RefusesMoreParametersThanCanBeCounted) {
  const std::string wide =
      "' type: 'dense' attr { name: 'units' i: 536870912 } } ";
  ExpectRefused(
      Flat("layer { name: 'a" + wide + "layer { name: 'b" + wide),
      AllOf(HasSubstr("more than 288230376151711744"),
            HasSubstr("'b/weights' of shape [536870912, 536870912]")));
}

constexpr char kConvNorm[] =
    "layer { name: 'conv' type: 'conv2d' attr { name: 'filters' i: 3 } "
    "attr { name: 'kernel' i: 3 } attr { name: 'l2' f: 0.5 } FREEZE } "
    "layer { name: 'bn' type: 'batch_norm' } "
    "layer { name: 'flatten' type: 'flatten' } "
    "layer { name: 'logits' type: 'dense' attr { name: 'units' i: 4 } } ";

// The model above with these patterns; `freeze` is of the convolution.
std::string Frozen(const std::vector<std::string>& patterns,
                   const std::string& freeze = "") {
  std::string text =
      Image(absl::StrReplaceAll(kConvNorm, {{"FREEZE", freeze}}));
  for (const std::string& pattern : patterns) {
    absl::StrAppend(&text, " freeze_pattern: '", pattern, "'");
  }
  return text;
}

std::vector<std::string> NamesOfFrozen(const std::string& text) {
  std::vector<std::string> names;
  const auto graph = ModelGraph::Create(ParseModel(text));
  EXPECT_THAT(graph, IsOk());
  if (!graph.ok()) return names;
  for (const auto& p : graph->parameters()) {
    if (p.kind != FROZEN) continue;
    names.push_back(p.name);
    EXPECT_EQ(p.l2, 0) << p.name;
    EXPECT_EQ(p.decay, 0) << p.name;
  }
  return names;
}

TEST(ModelGraphTest, FreezesLayersAndWhatPatternsMatchAsAWhole) {
  EXPECT_THAT(NamesOfFrozen(Frozen({})), ElementsAre());
  EXPECT_THAT(NamesOfFrozen(Frozen({}, "freeze: true")),
              ElementsAre("conv/weights", "conv/bias"));
  EXPECT_THAT(NamesOfFrozen(Frozen({"conv"})),
              ElementsAre("conv/weights", "conv/bias"));
  EXPECT_THAT(
      NamesOfFrozen(Frozen({"c.*v|bn", ".*/bias"})),
      ElementsAre("conv/weights", "conv/bias", "bn/scale", "bn/shift",
                  "bn/moving_mean", "bn/moving_variance", "logits/bias"));
  EXPECT_THAT(NamesOfFrozen(Frozen({"bn/s.*"})),
              ElementsAre("bn/scale", "bn/shift"));
}

TEST(ModelGraphTest, RefusesToFreezeWhatIsNotThere) {
  ExpectRefused(Frozen({"conv", "con"}),
                AllOf(HasSubstr("model.freeze_pattern 'con'"),
                      HasSubstr("did you mean 'conv'")));
  // It has no parameters.
  ExpectRefused(Frozen({"flatten"}), HasSubstr("matches no whole name"));
  ExpectRefused(Frozen({"con("}), HasSubstr("model.freeze_pattern 'con('"));
}

TEST(ModelGraphTest, RefusesToFreezeEverything) {
  ExpectRefused(Frozen({".*"}),
                AllOf(HasSubstr("'conv/weights'"), HasSubstr("'logits/bias'")));
  // Averages alone are no training.
  ExpectRefused(Frozen({"conv", "bn/s.*", "logits"}), HasSubstr("to train"));
}

TEST(ModelGraphTest, RefusesABatchNormThatIsFrozenInPart) {
  ExpectRefused(Frozen({"conv", "bn/moving_mean"}),
                AllOf(HasSubstr("'bn/moving_mean' is frozen"),
                      HasSubstr("freeze layer 'bn'")));
}

TEST(ModelGraphTest, RefusesAFrozenBatchNormBehindALayerThatIsTrained) {
  ExpectRefused(Frozen({"bn"}), AllOf(HasSubstr("layer 'bn' (batch_norm)"),
                                      HasSubstr("layer 'conv' before it")));
  ExpectRefused(Frozen({"bn", "conv/weights"}), HasSubstr("layer 'conv'"));
}

TEST(ModelGraphTest, ParametersThatAreSharedAreFrozenWithTheirOwner) {
  const std::string dense = "type: 'dense' attr { name: 'units' i: 6 } ";
  const auto model = [&](const std::string& owner, const std::string& other) {
    return Flat("layer { name: 'a' " + dense + owner +
                "} layer { name: 'b' share: 'a' " + dense + other +
                "} layer { name: 'c' " + dense + "} ");
  };
  EXPECT_THAT(NamesOfFrozen(model("freeze: true", "freeze: true")),
              ElementsAre("a/weights", "a/bias"));
  ExpectRefused(model("", "freeze: true"),
                AllOf(HasSubstr("layer 'b' (dense): freeze"),
                      HasSubstr("'a', which is not frozen")));
}

}  // namespace
}  // namespace muster
