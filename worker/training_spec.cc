#include "worker/training_spec.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/base/text_format.h"
#include "common/cluster/placement_strategy.h"
#include "common/optimizer/update_rule.h"
#include "google/protobuf/text_format.h"
#include "worker/training_override.h"

namespace muster {
namespace {

// Far more rows than any machine's memory holds of them.
constexpr int64_t kMaxBatchSize = 1 << 24;
constexpr int64_t kMaxPrefetch = 1024;
constexpr int64_t kDefaultPrefetch = 2;
constexpr int32_t kDefaultKeep = 5;

void FillDefaults(TrainingSpec* spec) {
  InputSpec* input = spec->mutable_input();
  if (!input->has_shuffle()) input->set_shuffle(true);
  if (!input->has_prefetch()) input->set_prefetch(kDefaultPrefetch);
  ScheduleSpec* schedule = spec->mutable_optimizer()->mutable_schedule();
  if (schedule->name().empty()) schedule->set_name("constant");
  ReplicationSpec* replication = spec->mutable_replication();
  if (replication->mode_case() == ReplicationSpec::MODE_NOT_SET) {
    replication->mutable_async();
  }
  PlacementSpec* placement = spec->mutable_placement();
  if (placement->strategy().empty()) placement->set_strategy("round_robin");
  CheckpointSpec* checkpoint = spec->mutable_checkpoint();
  if (checkpoint->keep() == 0) checkpoint->set_keep(kDefaultKeep);
  EvaluationSpec* evaluation = spec->mutable_evaluation();
  if (evaluation->batch_size() == 0) {
    evaluation->set_batch_size(input->batch_size());
  }
}

template <typename T>
absl::Status CheckRange(absl::string_view field, T value, T min, T max,
                        absl::string_view wanted) {
  // Written so that NaN fails.
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be ", wanted, ", found ", value));
}

absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  return CheckRange<int64_t>(field, value, 0, INT64_MAX, "0 or more");
}

absl::Status CheckFiniteNotNegative(absl::string_view field, double value) {
  return CheckRange<double>(field, value, 0, 1e15, "0 or more and finite");
}

absl::Status ValidateModel(const ModelSpec& model) {
  if (model.layer().empty()) {
    return absl::InvalidArgumentError("model.layer: the model has no layers");
  }
  for (const int64_t size : model.input_shape()) {
    RETURN_IF_ERROR(CheckRange<int64_t>("each size of model.input_shape", size,
                                        1, INT32_MAX, "1 or more"));
  }
  return absl::OkStatus();
}

absl::Status ValidateInput(const InputSpec& input) {
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "input.batch_size", input.batch_size(), 1, kMaxBatchSize,
      absl::StrCat("from 1 to ", kMaxBatchSize)));
  RETURN_IF_ERROR(
      CheckRange<int64_t>("input.prefetch", input.prefetch(), 1, kMaxPrefetch,
                          absl::StrCat("from 1 to ", kMaxPrefetch)));
  RETURN_IF_ERROR(
      CheckNotNegative("input.synthetic_examples", input.synthetic_examples()));
  RETURN_IF_ERROR(CheckNotNegative("input.synthetic_test_examples",
                                   input.synthetic_test_examples()));
  return CheckNotNegative("input.synthetic_classes", input.synthetic_classes());
}

absl::Status ValidateReplication(const ReplicationSpec& replication) {
  if (replication.has_async()) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("replication mode '",
                   replication.has_sync() ? "sync" : "bounded_staleness",
                   "' is not available in this version; use async"));
}

absl::Status ValidatePeriods(const TrainingSpec& spec) {
  const CheckpointSpec& checkpoint = spec.checkpoint();
  RETURN_IF_ERROR(
      CheckNotNegative("checkpoint.every_steps", checkpoint.every_steps()));
  RETURN_IF_ERROR(CheckFiniteNotNegative("checkpoint.every_seconds",
                                         checkpoint.every_seconds()));
  RETURN_IF_ERROR(CheckRange<int32_t>("checkpoint.keep", checkpoint.keep(), 1,
                                      INT32_MAX, "1 or more"));
  RETURN_IF_ERROR(CheckNotNegative("evaluation.every_steps",
                                   spec.evaluation().every_steps()));
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "evaluation.batch_size", spec.evaluation().batch_size(), 1, kMaxBatchSize,
      absl::StrCat("from 1 to ", kMaxBatchSize)));
  RETURN_IF_ERROR(CheckNotNegative("stop.steps", spec.stop().steps()));
  RETURN_IF_ERROR(CheckFiniteNotNegative("stop.epochs", spec.stop().epochs()));
  if (spec.stop().steps() == 0 && spec.stop().epochs() == 0) {
    return absl::InvalidArgumentError(
        "stop: one of stop.steps and stop.epochs must be more than 0, or the "
        "training would never end");
  }
  return absl::OkStatus();
}

void SortAttrs(google::protobuf::RepeatedPtrField<Attr>* attrs) {
  std::sort(attrs->begin(), attrs->end(),
            [](const Attr& a, const Attr& b) { return a.name() < b.name(); });
}

}  // namespace

absl::StatusOr<TrainingSpec> ParseTrainingSpec(
    absl::string_view text, absl::string_view source,
    absl::Span<const std::string> overrides) {
  TrainingSpec spec;
  RETURN_IF_ERROR(ParseTextProto(text, source, &spec));
  for (const std::string& assignment : overrides) {
    RETURN_IF_ERROR(ApplyOverride(assignment, &spec));
  }
  FillDefaults(&spec);
  RETURN_IF_ERROR(Annotate(ValidateTrainingSpec(spec), source));
  return spec;
}

absl::StatusOr<TrainingSpec> LoadTrainingSpec(
    absl::string_view path, absl::Span<const std::string> overrides) {
  const auto text = ReadFile(path);
  if (!text.ok()) return Annotate(text.status(), "--training");
  return ParseTrainingSpec(*text, path, overrides);
}

absl::Status ValidateTrainingSpec(const TrainingSpec& spec) {
  RETURN_IF_ERROR(ValidateModel(spec.model()));
  RETURN_IF_ERROR(ValidateInput(spec.input()));
  RETURN_IF_ERROR(
      Annotate(CreateUpdateRule(spec.optimizer()).status(), "optimizer"));
  RETURN_IF_ERROR(ValidateReplication(spec.replication()));
  RETURN_IF_ERROR(Annotate(CreatePlacementStrategy(spec.placement()).status(),
                           "placement"));
  return ValidatePeriods(spec);
}

std::string SemanticText(const TrainingSpec& spec) {
  TrainingSpec semantic = spec;
  semantic.clear_checkpoint();
  semantic.clear_stop();
  semantic.clear_evaluation();
  semantic.mutable_input()->clear_dir();
  semantic.mutable_input()->clear_prefetch();
  SortAttrs(semantic.mutable_optimizer()->mutable_attr());
  for (LayerSpec& layer : *semantic.mutable_model()->mutable_layer()) {
    SortAttrs(layer.mutable_attr());
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(semantic, &text);
  return text;
}

uint64_t SemanticFingerprint(const TrainingSpec& spec) {
  return Fingerprint64(SemanticText(spec));
}

}  // namespace muster
