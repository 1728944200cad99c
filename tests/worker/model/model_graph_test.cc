#include "worker/model/model_graph.h"

#include <string>
#include <vector>

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

}  // namespace
}  // namespace muster
