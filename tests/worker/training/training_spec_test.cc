#include "worker/training/training_spec.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSpec[] = R"(
model {
  name: "m"
  input_shape: [4]
  layer { name: "dense" type: "dense" attr { name: "units" i: 3 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input { type: "synthetic" batch_size: 8 }
optimizer { name: "adam" attr { name: "learning_rate" f: 1e-3 } }
stop { steps: 10 }
seed: 1
)";

absl::StatusOr<TrainingSpec> Parse(const std::vector<std::string>& overrides) {
  return ParseTrainingSpec(kSpec, "m.textproto", overrides);
}

uint64_t FingerprintAfter(const std::string& assignment) {
  const auto spec = Parse({assignment});
  EXPECT_THAT(spec, IsOk());
  return spec.ok() ? SemanticFingerprint(*spec) : 0;
}

TEST(TrainingSpecTest, FillsDefaultsIn) {
  const auto spec = Parse({});
  ASSERT_THAT(spec, IsOk());
  EXPECT_TRUE(spec->input().shuffle());
  EXPECT_EQ(spec->input().prefetch(), 2);
  EXPECT_EQ(spec->optimizer().schedule().name(), "constant");
  EXPECT_TRUE(spec->replication().has_async());
  EXPECT_EQ(spec->placement().strategy(), "round_robin");
  EXPECT_TRUE(spec->placement().partition().has_auto_());
  EXPECT_EQ(spec->checkpoint().keep(), 5);
  EXPECT_EQ(spec->checkpoint().max_save_seconds(), 300);
  EXPECT_EQ(spec->evaluation().batch_size(), 8);
  EXPECT_EQ(spec->summary().every_steps(), 100);
  EXPECT_EQ(spec->summary().histograms_every_steps(), 0);
  EXPECT_EQ(spec->summary().images(), 3);
  EXPECT_TRUE(spec->compute().tf32());
  EXPECT_FALSE(spec->compute().bf16());
  EXPECT_TRUE(spec->compute().cuda_graphs());
}

TEST(TrainingSpecTest, AStreamHasNoEpochs) {
  const std::string stream = "input.stream=true";
  EXPECT_THAT(Parse({stream, "input.shuffle_buffer=100"}), IsOk());
  EXPECT_THAT(
      Parse({stream, "stop.epochs=2"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("stop.epochs"), HasSubstr("input.stream"))));
  EXPECT_THAT(Parse({stream, "optimizer.schedule=cosine"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("optimizer.schedule.decay_steps")));
  EXPECT_THAT(
      Parse({stream, "input.batch_size=0", "input.global_batch_size=8"}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("input.global_batch_size")));
  EXPECT_THAT(Parse({stream, "input.shuffle=false", "input.shuffle_buffer=9"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input.shuffle is false")));
}

TEST(TrainingSpecTest, SummariesCanBeTurnedOff) {
  const auto spec = Parse({"summary.every_steps=0", "summary.images=0"});
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->summary().every_steps(), 0);
  EXPECT_EQ(spec->summary().images(), 0);
}

TEST(TrainingSpecTest, EachStopConditionIsEnough) {
  for (const char* const stop :
       {"stop.epochs=0.5", "stop.seconds=1.5", "stop.target_accuracy=0.9"}) {
    EXPECT_THAT(Parse({"stop.steps=0", "evaluation.every_steps=10", stop}),
                IsOk())
        << stop;
  }
}

TEST(TrainingSpecTest, AStopOfTheCommandLineReplacesTheFilesStops) {
  const auto epochs = Parse({"stop.epochs=2"});
  ASSERT_THAT(epochs, IsOk());
  EXPECT_EQ(epochs->stop().epochs(), 2);
  EXPECT_EQ(epochs->stop().steps(), 0);
  EXPECT_EQ(StopSource(*epochs, "m.textproto", {"stop.epochs=2"}), "--set");
  const auto both = Parse({"stop.epochs=2", "stop.steps=7"});
  ASSERT_THAT(both, IsOk());
  EXPECT_EQ(both->stop().epochs(), 2);
  EXPECT_EQ(both->stop().steps(), 7);
}

TEST(TrainingSpecTest, AStopThatIsTurnedOffReplacesNoOther) {
  const auto spec = Parse({"stop.epochs=0"});
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->stop().steps(), 10);
  EXPECT_EQ(StopSource(*spec, "m.textproto", {"stop.epochs=0"}), "m.textproto");
}

TEST(TrainingSpecTest, AppliesOverridesInTheirOrder) {
  const auto spec = Parse({"optimizer=sgd", "optimizer.sgd.learning_rate=0.5",
                           "stop.steps=20", "stop.steps=30"});
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->optimizer().attr(0).f(), 0.5);
  EXPECT_EQ(spec->stop().steps(), 30);
}

TEST(TrainingSpecTest, TakesRatesThatFitTheBatch) {
  EXPECT_THAT(Parse({"optimizer.learning_rate_scaling=SQRT",
                     "optimizer.reference_batch_size=64",
                     "optimizer.schedule=piecewise",
                     "optimizer.schedule.boundary=100,200",
                     "optimizer.schedule.value=1e-3,1e-4,0"}),
              IsOk());
}

TEST(TrainingSpecTest, NamesThePlaceOfAnUnknownField) {
  EXPECT_THAT(
      ParseTrainingSpec("seed: 1\nstop {\n  step: 3\n}", "m.textproto", {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("m.textproto:3:7: unknown StopSpec field "
                               "'step'; did you mean 'steps'?"))));
  EXPECT_THAT(
      ParseTrainingSpec("seed: x", "m", {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("m:1:7: ")));
}

TEST(TrainingSpecTest, RefusesWhatCannotTrain) {
  struct Case {
    const char* assignment;
    const char* wanted;
  };
  const Case kCases[] = {
      {"input.batch_size=0", "input.batch_size must be from 1 to 16777216"},
      {"input.batch_size=-1", "found -1"},
      {"input.threads=-1", "input.threads"},
      {"input.threads=257", "input.threads"},
      {"input.shuffle_buffer=5", "input.shuffle_buffer"},
      {"input.prefetch=0", "input.prefetch"},
      {"input.synthetic_examples=-1", "input.synthetic_examples"},
      {"model.input_shape=0", "each size of model.input_shape"},
      {"model.input_shape=-4", "found -4"},
      {"stop.steps=0", "one of stop.steps, stop.epochs, stop.seconds"},
      {"stop.steps=-1",
       "stop.steps must be from 0 (not set) to 1000000000000000, found -1"},
      {"stop.steps=1000000000000001", "found 1000000000000001"},
      {"stop.steps=9223372036854775807", "stop.steps must be from 0"},
      {"input.synthetic_examples=4611686018427387904",
       "input.synthetic_examples must be from 0"},
      {"stop.epochs=-0.5", "stop.epochs"},
      {"stop.seconds=-1", "stop.seconds must be 0 or more and finite"},
      {"stop.seconds=nan", "stop.seconds"},
      {"stop.target_accuracy=90", "stop.target_accuracy must be from 0 to 1"},
      {"stop.target_accuracy=0.9", "evaluation.every_steps is 0"},
      {"checkpoint.keep_best.metric=test_loss",
       "checkpoint.keep_best is set but evaluation.every_steps is 0"},
      {"stop.plateau.patience=3", "stop.plateau is set but evaluation."},
      {"non_finite.max_refusals=-1", "non_finite.max_refusals must be 1"},
      {"log_tensors.every_steps=-1", "log_tensors.every_steps"},
      {"log_tensors.pattern=conv.*", "log_tensors.every_steps is 0"},
      {"checkpoint.every_steps=-1", "checkpoint.every_steps"},
      {"checkpoint.every_seconds=-1", "checkpoint.every_seconds"},
      {"checkpoint.max_save_seconds=-1", "checkpoint.max_save_seconds"},
      {"input.dir=~/photos", "input.dir=~/photos"},
      {"input.dir=s3://bucket/photos", "mount it"},
      {"checkpoint.keep=-1", "checkpoint.keep must be 1 or more"},
      {"evaluation.every_steps=-1", "evaluation.every_steps"},
      {"evaluation.batch_size=-1", "evaluation.batch_size"},
      {"summary.every_steps=-1", "summary.every_steps must be 0 or more"},
      {"summary.histograms_every_steps=-1", "summary.histograms_every_steps"},
      {"summary.images=-1", "summary.images must be from 0 (none) to 100"},
      {"summary.images=101", "found 101"},
      {"optimizer=adma", "did you mean 'adam'?"},
      {"gradient.codec=bf61", "did you mean 'bf16'?"},
      {"pull.codec=fp61", "pull.codec"},
      {"pull.codec=bf61", "did you mean 'bf16'?"},
      {"gradient.error_feedback=true",
       "gradient.codec is not set: set it to one of bf16, fp16"},
      {"optimizer=", "unknown optimizer ''"},
      {"optimizer.learning_rate_scaling=LINEAR",
       "optimizer.reference_batch_size is not set"},
      {"optimizer.reference_batch_size=64",
       "optimizer.learning_rate_scaling is NONE"},
      {"optimizer.learning_rate_scaling=LINEER", "did you mean 'LINEAR'?"},
      {"optimizer.schedule.warmup_steps=-1", "schedule.warmup_steps"},
      {"optimizer.schedule.power=2", "schedule.power is set, but"},
      {"gradient.clip.by_value=0", "gradient.clip.by_value must be above 0"},
      {"gradient.clip.by_norm=-1", "gradient.clip.by_norm"},
      {"gradient.clip.by_global_norm=1e300", "gradient.clip.by_global_norm"},
      {"optimizer.adam.learning_rate=-1", "learning_rate"},
      {"optimizer.schedule=cosin", "did you mean 'cosine'?"},
      {"optimizer.schedule=exponential", "schedule.decay_steps must be"},
      {"placement=gready", "did you mean 'greedy'?"},
      {"placement=pinned", "needs at least one pin"},
      {"placement.seed=1", "placement.seed is for the strategy 'random'"},
      {"placement.partition=fixed",
       "placement: partition.fixed.parts must be at least 1, found 0"},
      {"class_weight={class: 'a' weight: 2}, {class: 'a' weight: 3}",
       "class_weight: the class 'a' is there twice"},
      {"class_weight={class: 'a' weight: -1}", "class_weight of 'a' must be 0"},
      {"class_weight={class: 'a' weight: nan}", "found nan"},
      {"class_weight={class: 'a' weight: inf}", "found inf"},
      {"table={pattern: '.*'}", "table: a model of layers has no tables"},
  };
  for (const Case& c : kCases) {
    const auto spec = Parse({c.assignment});
    ASSERT_FALSE(spec.ok()) << c.assignment;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr(c.wanted));
  }
  EXPECT_THAT(ParseTrainingSpec("", "m", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("m: model.layer: the model has no layers")));
}

TEST(TrainingSpecTest, WhatIsNotSentHasNoCodec) {
  const std::string in_place = "replication.async.pull=IN_PLACE";
  EXPECT_THAT(Parse({in_place}), IsOk());
  EXPECT_THAT(Parse({in_place, "pull.codec=bf16"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("pull.codec is \"bf16\", but with "
                                 "replication.async.pull: IN_PLACE")));
}

TEST(TrainingSpecTest, TakesEveryReplicationMode) {
  const auto sync = Parse({"replication.sync.replicas_to_aggregate=2",
                           "replication.sync.when_too_few=EXIT"});
  ASSERT_THAT(sync, IsOk());
  EXPECT_EQ(sync->replication().sync().replicas_to_aggregate(), 2);
  EXPECT_EQ(sync->replication().sync().when_too_few(), EXIT);
  const auto bounded = Parse({"replication=bounded_staleness",
                              "replication.bounded_staleness.bound=3"});
  ASSERT_THAT(bounded, IsOk());
  EXPECT_EQ(bounded->replication().bounded_staleness().bound(), 3);
  EXPECT_THAT(Parse({"replication.bounded_staleness.bound=-1"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("replication.bounded_staleness.bound must be "
                                 "0 or more, found -1")));
}

TEST(TrainingSpecTest, LoadsAFileOrNamesIt) {
  const std::string path = absl::StrCat(testing::TempDir(), "/m.textproto");
  std::ofstream(path) << kSpec;
  EXPECT_THAT(LoadTrainingSpec(path, {}), IsOk());
  EXPECT_THAT(LoadTrainingSpec("/nowhere/m.textproto", {}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("--training: reading /nowhere/m.textproto")));
}

TEST(TrainingSpecTest, FingerprintHoldsWhatIsTrained) {
  const uint64_t base = FingerprintAfter("seed=1");
  for (const char* assignment :
       {"seed=2", "input.batch_size=9", "optimizer=sgd", "placement=greedy",
        "optimizer.adam.beta1=0.8", "model.dense.units=4",
        "input.shuffle=false", "gradient.clip.by_norm=1",
        "optimizer.schedule.warmup_steps=3", "non_finite.allow=true",
        "input.header=false", "input.test_fraction=0.1",
        "input.validation_fraction=0.1", "input.decode=SCALED"}) {
    EXPECT_NE(FingerprintAfter(assignment), base) << assignment;
  }
  for (const char* assignment :
       {"stop.steps=99", "stop.epochs=3", "input.dir=/elsewhere",
        "input.prefetch=7", "input.threads=3", "input.parts=ANY",
        "checkpoint.every_steps=5", "checkpoint.keep=2",
        "evaluation.every_steps=3", "summary.every_steps=7", "stop.seconds=9",
        "non_finite.max_refusals=9", "log_tensors.every_steps=7",
        "compute.bf16=true", "compute.tf32=false",
        "compute.cuda_graphs=false"}) {
    EXPECT_EQ(FingerprintAfter(assignment), base) << assignment;
  }
}

TEST(TrainingSpecTest, SemanticTextNamesNoPaths) {
  const auto spec = Parse({"input.dir=/secret/place"});
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(SemanticText(*spec),
              AllOf(HasSubstr("batch_size: 8"), Not(HasSubstr("secret"))));
}

TEST(TrainingSpecTest, DevicesAreNoPartOfWhatWorkersCompare) {
  const auto spec = Parse({});
  ASSERT_THAT(spec, IsOk());
  TrainingSpec divided = *spec;
  divided.mutable_model()->mutable_layer(0)->set_device("cpu:1");
  divided.mutable_model()->mutable_layer(0)->mutable_split()->set_parts(2);
  divided.mutable_model()->add_device_rule()->set_device("cpu:2");
  divided.mutable_model()->mutable_pipeline()->set_micro_batches(4);
  divided.mutable_tower()->set_controller_device("cpu:3");
  EXPECT_EQ(SemanticText(divided), SemanticText(*spec));
}

TEST(TrainingSpecTest, ATextThatFitsIntoNoMessageIsRefused) {
  auto spec = Parse({});
  ASSERT_THAT(spec, IsOk());
  EXPECT_THAT(CheckTextSize(*spec), IsOk());
  const LayerSpec layer = spec->model().layer(0);
  for (int i = 0; i < 20000; ++i) *spec->mutable_model()->add_layer() = layer;
  EXPECT_THAT(CheckTextSize(*spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 1048576 can be sent to ps task 0")));
}

}  // namespace
}  // namespace muster
