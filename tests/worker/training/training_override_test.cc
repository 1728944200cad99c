#include "worker/training/training_override.h"

#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrainingSpec Spec() {
  TrainingSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model { name: 'm' input_shape: [1, 28, 28]"
      "  layer { name: 'conv1' type: 'conv2d' attr { name: 'filters' i: 32 } }"
      "  layer { name: 'act' type: 'relu' } }"
      "optimizer { name: 'adam' attr { name: 'learning_rate' f: 0.5 } }",
      &spec));
  return spec;
}

TrainingSpec After(const std::string& assignment) {
  TrainingSpec spec = Spec();
  EXPECT_THAT(ApplyOverride(assignment, &spec), IsOk());
  return spec;
}

TEST(TrainingOverrideTest, SetsScalarFieldsOfEveryType) {
  EXPECT_EQ(After("stop.steps=100").stop().steps(), 100);
  EXPECT_EQ(After("stop.epochs=2.5").stop().epochs(), 2.5);
  EXPECT_EQ(After("checkpoint.every_seconds=30").checkpoint().every_seconds(),
            30);
  EXPECT_EQ(After("checkpoint.keep=3").checkpoint().keep(), 3);
  EXPECT_EQ(After("input.dir=/a=b").input().dir(), "/a=b");
  EXPECT_EQ(After("seed=-7").seed(), -7);
  const TrainingSpec unshuffled = After("input.shuffle=false");
  EXPECT_TRUE(unshuffled.input().has_shuffle());
  EXPECT_FALSE(unshuffled.input().shuffle());
  EXPECT_THAT(After("model.input_shape=3,32,32").model().input_shape(),
              ElementsAre(3, 32, 32));
  EXPECT_THAT(
      After("optimizer.schedule.value=0.5,1e-3").optimizer().schedule().value(),
      ElementsAre(0.5, 1e-3));
  EXPECT_EQ(After("optimizer.learning_rate_scaling=SQRT")
                .optimizer()
                .learning_rate_scaling(),
            SQRT);
  EXPECT_EQ(After("gradient.clip.by_norm=2").gradient().clip().by_norm(), 2);
}

TEST(TrainingOverrideTest, FreezesLayersAndPatterns) {
  EXPECT_THAT(After("model.freeze_pattern=conv.*,act").model().freeze_pattern(),
              ElementsAre("conv.*", "act"));
  EXPECT_THAT(After("model.freeze_pattern=").model().freeze_pattern(),
              ElementsAre());
  EXPECT_TRUE(After("model.conv1.freeze=true").model().layer(0).freeze());
  TrainingSpec spec = Spec();
  EXPECT_THAT(
      ApplyOverride("model.conv1.freeze=maybe", &spec),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'conv1'"), HasSubstr("true or false"))));
}

TEST(TrainingOverrideTest, PlacesLayers) {
  EXPECT_EQ(After("model.conv1.device=cpu:1").model().layer(0).device(),
            "cpu:1");
  EXPECT_EQ(After("model.device_rule={pattern: 'c.*' device: '/cpu:1'}")
                .model()
                .device_rule(0)
                .device(),
            "/cpu:1");
  EXPECT_EQ(After("model.conv1.split.parts=2").model().layer(0).split().parts(),
            2);
  EXPECT_THAT(After("model.conv1.split.devices=cpu:0,cpu:1")
                  .model()
                  .layer(0)
                  .split()
                  .devices(),
              ElementsAre("cpu:0", "cpu:1"));
}

TEST(TrainingOverrideTest, SetsAListOfMessagesAsAWhole) {
  TrainingSpec spec = After("placement.pin={pattern: 'a.*' ps_task: 1}");
  ASSERT_EQ(spec.placement().pin_size(), 1);
  EXPECT_EQ(spec.placement().pin(0).pattern(), "a.*");
  EXPECT_EQ(spec.placement().pin(0).ps_task(), 1);
  ASSERT_THAT(
      ApplyOverride(
          "placement.pin= {pattern: \"b\"}, {pattern: 'c=' ps_task: 2} ",
          &spec),
      IsOk());
  ASSERT_EQ(spec.placement().pin_size(), 2);
  EXPECT_EQ(spec.placement().pin(0).pattern(), "b");
  EXPECT_EQ(spec.placement().pin(1).pattern(), "c=");
}

TEST(TrainingOverrideTest, ReplacesAMessageByItsTextInBraces) {
  const PlacementSpec placement =
      After("placement= {strategy: 'greedy' seed: 3} ").placement();
  EXPECT_EQ(placement.strategy(), "greedy");
  EXPECT_EQ(placement.seed(), 3);
  EXPECT_TRUE(After("replication={sync {replicas_to_aggregate: 2}}")
                  .replication()
                  .has_sync());
  EXPECT_TRUE(
      After("placement.partition.auto={}").placement().partition().has_auto_());
  EXPECT_EQ(After("stop={}").stop().ByteSizeLong(), 0);
  EXPECT_EQ(After("optimizer={name: 'sgd'}").optimizer().attr_size(), 0);
}

TEST(TrainingOverrideTest, ChoosesPartsByName) {
  EXPECT_EQ(After("placement=greedy").placement().strategy(), "greedy");
  EXPECT_EQ(After("input=synthetic").input().type(), "synthetic");
  EXPECT_EQ(After("optimizer.schedule=cosine").optimizer().schedule().name(),
            "cosine");
  EXPECT_TRUE(After("replication=async").replication().has_async());
  EXPECT_TRUE(
      After("placement.partition=none").placement().partition().has_none());
  EXPECT_EQ(After("placement.partition.fixed.parts=3")
                .placement()
                .partition()
                .fixed()
                .parts(),
            3);
  EXPECT_EQ(After("replication.sync.replicas_to_aggregate=2")
                .replication()
                .sync()
                .replicas_to_aggregate(),
            2);
}

TEST(TrainingOverrideTest, AnotherOptimizerStartsWithItsOwnDefaults) {
  const TrainingSpec sgd = After("optimizer=sgd");
  EXPECT_EQ(sgd.optimizer().name(), "sgd");
  EXPECT_EQ(sgd.optimizer().attr_size(), 0);
  EXPECT_EQ(After("optimizer=adam").optimizer().attr_size(), 1);
}

TEST(TrainingOverrideTest, SetsOptimizerAttributesByTheirTable) {
  for (const char* path :
       {"optimizer.adam.learning_rate=3e-4", "optimizer.learning_rate=3e-4"}) {
    const TrainingSpec spec = After(path);
    ASSERT_EQ(spec.optimizer().attr_size(), 1);
    EXPECT_EQ(spec.optimizer().attr(0).f(), 3e-4);
  }
  const TrainingSpec added = After("optimizer.adam.beta1=0.8");
  ASSERT_EQ(added.optimizer().attr_size(), 2);
  EXPECT_EQ(added.optimizer().attr(1).name(), "beta1");
}

TEST(TrainingOverrideTest, SetsLayerAttributesAndTypes) {
  EXPECT_EQ(After("model.conv1.filters=16").model().layer(0).attr(0).i(), 16);
  EXPECT_EQ(After("model.act.type=tanh").model().layer(1).type(), "tanh");
}

TEST(TrainingOverrideTest, SetsParametersOfABlocksUseAndItsLayers) {
  const auto after = [](const std::string& assignment) {
    TrainingSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "model {"
        "  block { name: 'b' parameter { name: 'filters' i: 8 }"
        "    layer { name: 'conv' type: 'conv2d'"
        "      attr { name: 'filters' parameter: 'filters' } } }"
        "  layer { name: 'x' type: 'b' } }",
        &spec));
    EXPECT_THAT(ApplyOverride(assignment, &spec), IsOk());
    return spec.model();
  };
  const ModelSpec use = after("model.x.filters=16");
  ASSERT_EQ(use.layer(0).attr_size(), 1);
  EXPECT_EQ(use.layer(0).attr(0).i(), 16);
  const ModelSpec layer = after("model.x/conv.filters=32");
  EXPECT_EQ(layer.layer(0).name(), "x/conv");
  EXPECT_EQ(layer.layer(0).attr(0).i(), 32);
}

TEST(TrainingOverrideTest, NamesTheMistakeAndTheNearestName) {
  struct Case {
    const char* assignment;
    const char* wanted;
  };
  const Case kCases[] = {
      {"stop.steps", "wanted path=value"},
      {"=3", "wanted path=value"},
      {"stpo.steps=3", "TrainingSpec field 'stpo'; did you mean 'stop'?"},
      {"stop.step=3", "StopSpec field 'step'; did you mean 'steps'?"},
      {"stop.=3", "unknown StopSpec field ''"},
      {"stop.steps.x=3", "'steps' has no part 'x'"},
      {"stop.steps=many", "must be a whole number, found 'many'"},
      {"stop.steps=1.5", "must be a whole number"},
      {"stop.steps=99999999999999999999", "must be a whole number"},
      {"checkpoint.keep=9999999999", "must be a whole number"},
      {"stop.epochs=nan", "must be a number"},
      {"input.shuffle=maybe", "must be true or false"},
      {"model.input_shape=1,x", "whole numbers separated by commas"},
      {"optimizer.schedule.value=1,x", "be numbers separated by commas"},
      {"optimizer.schedule.value=inf", "numbers separated by commas"},
      {"optimizer.learning_rate_scaling=SQR", "did you mean 'SQRT'?"},
      {"model.layer=conv", "must be text in braces"},
      {"placement.pin={patern: 'a'}", "did you mean 'pattern'?"},
      {"placement.partition=fixd", "did you mean 'fixed'?"},
      {"stop=3",
       "StopSpec needs a field, or its text in braces: steps, epochs"},
      {"stop={steps: 3", "the value must be text in braces"},
      {"stop={stps: 3}", "did you mean 'steps'?"},
      {"placement.partition.auto=yes", "the value must be {}, found 'yes'"},
      {"replication=asynch", "did you mean 'async'?"},
      {"optimizer.sgd.learning_rate=1", "the optimizer is 'adam', not 'sgd'"},
      {"optimizer.adam.learning_rat=1", "did you mean 'learning_rate'?"},
      {"optimizer.adma.learning_rate=1", "optimizer 'adam'"},
      {"optimizer.adam=1", "names no attribute"},
      {"optimizer.adam.learning_rate=fast", "must be of type float"},
      {"optimizer.adam.learning_rate.x=1", "has no part 'x'"},
      {"model.conv.filters=16", "unknown layer 'conv'; did you mean 'conv1'?"},
      {"model.conv1.filter=16",
       "layer 'conv1' (conv2d): unknown attribute 'filter'; did you mean "
       "'filters'?"},
      {"model.conv1=16", "names a layer but no attribute"},
  };
  for (const Case& c : kCases) {
    TrainingSpec spec = Spec();
    const absl::Status status = ApplyOverride(c.assignment, &spec);
    ASSERT_FALSE(status.ok()) << c.assignment;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(c.wanted), HasSubstr("--set ")));
    EXPECT_EQ(spec.SerializeAsString(), Spec().SerializeAsString());
  }
}

}  // namespace
}  // namespace muster
