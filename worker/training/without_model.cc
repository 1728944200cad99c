#include "worker/training/without_model.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/placement_strategy.h"
#include "common/codec/codec.h"
#include "common/optimizer/scale_learning_rate.h"
#include "common/optimizer/update_rule.h"
#include "google/protobuf/descriptor.h"
#include "worker/tower/gradient_clipper.h"
#include "worker/training/check_range.h"
#include "worker/training/optimizers_of.h"
#include "worker/training/replication_settings.h"
#include "worker/training/schedule_length.h"
#include "worker/training/table_defs.h"

namespace muster {
namespace {

constexpr int64_t kMaxAccumulateBatches = 1 << 16;
constexpr int32_t kDefaultKeep = 5;
constexpr double kDefaultMaxSaveSeconds = 300;
constexpr int32_t kDefaultMaxRefusals = 3;
constexpr int64_t kDefaultSummarySteps = 100;
constexpr int32_t kDefaultSummaryImages = 3;
// More than a page shows.
constexpr int32_t kMaxSummaryImages = 100;

// How many rows an update will have is not known yet; those of reference make
// the rate that is written. Nor how many updates an epoch will have.
absl::Status ValidateOptimizer(OptimizerSpec optimizer, const StopSpec& stop) {
  RETURN_IF_ERROR(FitScheduleToTraining(stop, {/*rows=*/1}, &optimizer));
  ASSIGN_OR_RETURN(
      const ScaledOptimizer scaled,
      ScaleLearningRate(
          optimizer, std::max<int64_t>(optimizer.reference_batch_size(), 1)));
  return CreateUpdateRule(scaled.spec).status();
}

absl::Status ValidateGradient(const GradientSpec& gradient) {
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "gradient.accumulate_batches", gradient.accumulate_batches(), 0,
      kMaxAccumulateBatches,
      absl::StrCat("from 0 to ", kMaxAccumulateBatches)));
  RETURN_IF_ERROR(GradientClipper::Create(gradient.clip()).status());
  if (gradient.error_feedback() && gradient.codec().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradient.error_feedback keeps what a codec takes from a gradient, but "
        "gradient.codec is not set: set it to one of ",
        absl::StrJoin(CodecRegistry::Names(), ", "),
        ", or leave error_feedback out"));
  }
  return Annotate(FindCodec(gradient.codec()).status(), "gradient.codec");
}

absl::Status ValidatePull(const TrainingSpec& spec) {
  const std::string& codec = spec.pull().codec();
  RETURN_IF_ERROR(Annotate(FindCodec(codec).status(), "pull.codec"));
  if (codec.empty() || !PullsInPlace(spec.replication())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "pull.codec is \"", codec,
      "\", but with replication.async.pull: IN_PLACE no values are sent; leave "
      "one of them out"));
}

absl::Status ValidateNonFinite(const NonFiniteSpec& non_finite) {
  if (non_finite.max_refusals() >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "non_finite.max_refusals must be 1 or more, found ",
      non_finite.max_refusals(), "; non_finite.allow turns the refusing off"));
}

absl::Status ValidateSummary(const SummarySpec& summary) {
  RETURN_IF_ERROR(
      CheckNotNegative("summary.every_steps", summary.every_steps()));
  RETURN_IF_ERROR(CheckNotNegative("summary.histograms_every_steps",
                                   summary.histograms_every_steps()));
  return CheckRange<int32_t>(
      "summary.images", summary.images(), 0, kMaxSummaryImages,
      absl::StrCat("from 0 (none) to ", kMaxSummaryImages));
}

absl::Status ValidateCheckpoint(const CheckpointSpec& checkpoint) {
  RETURN_IF_ERROR(
      CheckNotNegative("checkpoint.every_steps", checkpoint.every_steps()));
  RETURN_IF_ERROR(CheckFiniteNotNegative("checkpoint.every_seconds",
                                         checkpoint.every_seconds()));
  RETURN_IF_ERROR(CheckRange<int32_t>("checkpoint.keep", checkpoint.keep(), 1,
                                      INT32_MAX, "1 or more"));
  RETURN_IF_ERROR(CheckFiniteNotNegative("checkpoint.keep_every_hours",
                                         checkpoint.keep_every_hours()));
  return CheckFiniteNotNegative("checkpoint.max_save_seconds",
                                checkpoint.max_save_seconds());
}

absl::Status ValidateStop(const StopSpec& stop) {
  RETURN_IF_ERROR(CheckCount("stop.steps", stop.steps()));
  RETURN_IF_ERROR(CheckFiniteNotNegative("stop.epochs", stop.epochs()));
  return CheckFiniteNotNegative("stop.seconds", stop.seconds());
}

absl::Status RefuseField(absl::string_view field, absl::string_view advice) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": the program computes its own gradients; ", advice,
                   " (leave the field out)"));
}

// What is of a model of layers and its data, as a whole.
absl::Status RefusePartsOfModel(const TrainingSpec& spec) {
  constexpr const char* kParts[] = {"model",       "input",   "evaluation",
                                    "tower",       "compute", "log_tensors",
                                    "class_weight"};
  const auto* type = TrainingSpec::descriptor();
  const auto* reflection = TrainingSpec::GetReflection();
  for (const char* const part : kParts) {
    const auto* field = type->FindFieldByName(part);
    const bool is_set = field->is_repeated()
                            ? reflection->FieldSize(spec, field) > 0
                            : reflection->HasField(spec, field);
    if (is_set) {
      return RefuseField(part, "its model, data and devices are its own");
    }
  }
  return absl::OkStatus();
}

absl::Status RefuseEvaluations(const TrainingSpec& spec) {
  constexpr char kAdvice[] = "it evaluates its model itself";
  if (spec.checkpoint().has_keep_best()) {
    return RefuseField("checkpoint.keep_best", kAdvice);
  }
  if (spec.stop().target_accuracy() != 0) {
    return RefuseField("stop.target_accuracy", kAdvice);
  }
  if (spec.stop().has_plateau()) return RefuseField("stop.plateau", kAdvice);
  if (spec.optimizer().schedule().name() == "on_plateau") {
    return RefuseField("optimizer.schedule", kAdvice);
  }
  for (const TableSpec& table : spec.table()) {
    if (table.optimizer().schedule().name() == "on_plateau") {
      return RefuseField("table.optimizer.schedule", kAdvice);
    }
  }
  if (spec.summary().images() > 0) {
    return RefuseField("summary.images", "its data are its own");
  }
  return absl::OkStatus();
}

absl::Status RefuseWaysOfTowers(const TrainingSpec& spec) {
  if (spec.gradient().has_clip()) {
    return RefuseField("gradient.clip", "it clips them before it pushes them");
  }
  if (spec.gradient().accumulate_batches() > 1) {
    return RefuseField("gradient.accumulate_batches",
                       "it pushes the mean over several batches");
  }
  if (PipelineDepth(spec.replication()) > 1) {
    return RefuseField("replication.async.pipeline_depth",
                       "one step of it is on the way at a time");
  }
  if (PullsInPlace(spec.replication())) {
    return RefuseField("replication.async.pull: IN_PLACE",
                       "parameters come into its own memory");
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaultsWithoutModel(TrainingSpec* spec) {
  for (OptimizerSpec* const optimizer : OptimizersOf(spec)) {
    ScheduleSpec* schedule = optimizer->mutable_schedule();
    if (schedule->name().empty()) schedule->set_name("constant");
  }
  ReplicationSpec* replication = spec->mutable_replication();
  if (replication->mode_case() == ReplicationSpec::MODE_NOT_SET) {
    replication->mutable_async();
  }
  PlacementSpec* placement = spec->mutable_placement();
  if (placement->strategy().empty()) placement->set_strategy("round_robin");
  PartitionSpec* partition = placement->mutable_partition();
  if (partition->kind_case() == PartitionSpec::KIND_NOT_SET) {
    partition->mutable_auto_();
  }
  CheckpointSpec* checkpoint = spec->mutable_checkpoint();
  if (checkpoint->keep() == 0) checkpoint->set_keep(kDefaultKeep);
  if (checkpoint->max_save_seconds() == 0) {
    checkpoint->set_max_save_seconds(kDefaultMaxSaveSeconds);
  }
  SummarySpec* summary = spec->mutable_summary();
  if (!summary->has_every_steps()) {
    summary->set_every_steps(kDefaultSummarySteps);
  }
  if (!summary->has_images()) summary->set_images(kDefaultSummaryImages);
  NonFiniteSpec* non_finite = spec->mutable_non_finite();
  if (non_finite->max_refusals() == 0) {
    non_finite->set_max_refusals(kDefaultMaxRefusals);
  }
}

absl::Status ValidateWithoutModel(const TrainingSpec& spec) {
  RETURN_IF_ERROR(
      Annotate(ValidateOptimizer(spec.optimizer(), spec.stop()), "optimizer"));
  for (const TableSpec& table : spec.table()) {
    if (!table.has_optimizer()) continue;
    RETURN_IF_ERROR(Annotate(ValidateOptimizer(table.optimizer(), spec.stop()),
                             "table.optimizer"));
  }
  RETURN_IF_ERROR(ValidateTables(spec));
  RETURN_IF_ERROR(ValidateReplication(spec.replication()));
  RETURN_IF_ERROR(ValidateGradient(spec.gradient()));
  RETURN_IF_ERROR(ValidatePull(spec));
  RETURN_IF_ERROR(Annotate(CreatePlacementStrategy(spec.placement()).status(),
                           "placement"));
  RETURN_IF_ERROR(ValidateNonFinite(spec.non_finite()));
  RETURN_IF_ERROR(ValidateCheckpoint(spec.checkpoint()));
  RETURN_IF_ERROR(ValidateSummary(spec.summary()));
  return ValidateStop(spec.stop());
}

absl::StatusOr<TrainingSpec> CompleteProgramTraining(TrainingSpec spec) {
  RETURN_IF_ERROR(RefusePartsOfModel(spec));
  RETURN_IF_ERROR(RefuseEvaluations(spec));
  RETURN_IF_ERROR(RefuseWaysOfTowers(spec));
  spec.mutable_summary()->set_images(0);
  FillDefaultsWithoutModel(&spec);
  RETURN_IF_ERROR(ValidateWithoutModel(spec));
  return spec;
}

}  // namespace muster
