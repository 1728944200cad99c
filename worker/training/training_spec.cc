#include "worker/training/training_spec.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/fingerprint.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/config/local_path.h"
#include "common/config/name_pattern.h"
#include "common/config/text_format.h"
#include "common/rpc/protocol.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "worker/input/input_threads.h"
#include "worker/model/expand_blocks.h"
#include "worker/training/check_range.h"
#include "worker/training/optimizers_of.h"
#include "worker/training/schedule_length.h"
#include "worker/training/training_override.h"
#include "worker/training/without_model.h"

namespace muster {
namespace {

using ::google::protobuf::FieldDescriptor;

// Far more rows than any machine's memory holds of them.
constexpr int64_t kMaxBatchSize = 1 << 24;
// The rows of an evaluation's batch where the global batch is all that is
// known: that is divided in training, and may be too large for one model.
constexpr int64_t kMostEvaluationRows = 512;
constexpr int64_t kMaxPrefetch = 1024;
constexpr int64_t kDefaultPrefetch = 2;
// The text's share of a message, which has room for more.
constexpr int64_t kMaxTextBytes = kMaxPartBytes;

// The stop conditions that `overrides` name.
std::vector<const FieldDescriptor*> NamedStops(
    absl::Span<const std::string> overrides) {
  std::vector<const FieldDescriptor*> named;
  const auto* type = StopSpec::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const std::string path = absl::StrCat("stop.", type->field(i)->name());
    const auto names = [&path](const std::string& assignment) {
      return absl::StartsWith(assignment, path + "=") ||
             absl::StartsWith(assignment, path + ".") ||
             absl::StartsWith(assignment, "stop={");
    };
    if (absl::c_any_of(overrides, names)) named.push_back(type->field(i));
  }
  return named;
}

// Is one of these conditions on?
bool IsAnyOn(const StopSpec& stop,
             absl::Span<const FieldDescriptor* const> conditions) {
  return absl::c_any_of(conditions, [&stop](const FieldDescriptor* field) {
    return stop.GetReflection()->HasField(stop, field);
  });
}

void ReplaceStops(absl::Span<const std::string> overrides, StopSpec* stop) {
  const std::vector<const FieldDescriptor*> named = NamedStops(overrides);
  if (!IsAnyOn(*stop, named)) return;
  for (int i = 0; i < stop->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = stop->GetDescriptor()->field(i);
    if (absl::c_linear_search(named, field)) continue;
    stop->GetReflection()->ClearField(stop, field);
  }
}

void FillDefaults(TrainingSpec* spec) {
  InputSpec* input = spec->mutable_input();
  if (!input->has_shuffle()) input->set_shuffle(true);
  if (!input->has_prefetch()) input->set_prefetch(kDefaultPrefetch);
  FillDefaultsWithoutModel(spec);
  ComputeSpec* compute = spec->mutable_compute();
  if (!compute->has_tf32()) compute->set_tf32(true);
  if (!compute->has_cuda_graphs()) compute->set_cuda_graphs(true);
  EvaluationSpec* evaluation = spec->mutable_evaluation();
  if (evaluation->batch_size() == 0) {
    evaluation->set_batch_size(
        input->global_batch_size() == 0
            ? input->batch_size()
            : std::min(input->global_batch_size(), kMostEvaluationRows));
  }
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

absl::Status ValidateBatchSize(const InputSpec& input) {
  if (input.batch_size() != 0 && input.global_batch_size() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.batch_size (", input.batch_size(),
        ", of one tower) and input.global_batch_size (",
        input.global_batch_size(),
        ", of all together) are two answers to one question: give one; 0 takes "
        "the other away"));
  }
  const bool global = input.global_batch_size() != 0;
  return CheckRange<int64_t>(
      global ? "input.global_batch_size" : "input.batch_size",
      global ? input.global_batch_size() : input.batch_size(), 1, kMaxBatchSize,
      absl::StrCat("from 1 to ", kMaxBatchSize));
}

absl::Status ValidateInput(const InputSpec& input) {
  RETURN_IF_ERROR(CheckLocalPath("input.dir", input.dir()));
  RETURN_IF_ERROR(ValidateBatchSize(input));
  RETURN_IF_ERROR(
      CheckRange<int64_t>("input.prefetch", input.prefetch(), 1, kMaxPrefetch,
                          absl::StrCat("from 1 to ", kMaxPrefetch)));
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "input.threads", input.threads(), 0, kMaxInputThreads,
      absl::StrCat("from 0 (chosen) to ", kMaxInputThreads)));
  RETURN_IF_ERROR(
      CheckCount("input.synthetic_examples", input.synthetic_examples()));
  RETURN_IF_ERROR(CheckCount("input.synthetic_test_examples",
                             input.synthetic_test_examples()));
  return CheckNotNegative("input.synthetic_classes", input.synthetic_classes());
}

absl::Status ValidateClassWeights(const TrainingSpec& spec) {
  absl::flat_hash_set<absl::string_view> named;
  for (const ClassWeight& of_class : spec.class_weight()) {
    if (!named.insert(of_class.class_()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("class_weight: the class '",
                       EscapeForLog(of_class.class_()), "' is there twice"));
    }
    RETURN_IF_ERROR(CheckFiniteNotNegative(
        absl::StrCat("class_weight of '", EscapeForLog(of_class.class_()), "'"),
        of_class.weight()));
  }
  return absl::OkStatus();
}

absl::Status WithStream(absl::string_view field, absl::string_view advice) {
  return absl::InvalidArgumentError(absl::StrCat(
      field,
      ": with input.stream nobody knows how many examples an epoch has; ",
      advice));
}

absl::Status ValidateStream(const TrainingSpec& spec) {
  const InputSpec& input = spec.input();
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "input.shuffle_buffer", input.shuffle_buffer(), 0, kMaxBatchSize,
      absl::StrCat("from 0 to ", kMaxBatchSize)));
  if (!input.stream()) {
    if (input.shuffle_buffer() == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "input.shuffle_buffer is of input.stream; without it all rows are "
        "shuffled: leave it out");
  }
  if (!input.shuffle() && input.shuffle_buffer() > 1) {
    return absl::InvalidArgumentError(
        "input.shuffle is false, and input.shuffle_buffer is set: leave one of "
        "them out");
  }
  if (spec.stop().epochs() > 0) {
    return WithStream("stop.epochs", "set stop.steps or stop.seconds");
  }
  if (FallsOverTraining(spec.optimizer().schedule())) {
    return WithStream("optimizer.schedule.decay_steps", "set it");
  }
  if (input.global_batch_size() > 0) {
    return WithStream("input.global_batch_size", "set input.batch_size");
  }
  return absl::OkStatus();
}

// `goal` is told by evaluations alone: "stop.target_accuracy is 0.9".
absl::Status CheckEvaluates(absl::string_view goal, const TrainingSpec& spec) {
  if (spec.evaluation().every_steps() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      goal,
      " but evaluation.every_steps is 0, so that nobody would see it reached: "
      "set evaluation.every_steps to the global steps between two "
      "evaluations"));
}

absl::Status ValidateStop(const TrainingSpec& spec) {
  const StopSpec& stop = spec.stop();
  RETURN_IF_ERROR(CheckRange<double>("stop.target_accuracy",
                                     stop.target_accuracy(), 0, 1,
                                     "from 0 to 1 (0.9 means 90 %)"));
  if (stop.target_accuracy() > 0) {
    RETURN_IF_ERROR(CheckEvaluates(
        absl::StrCat("stop.target_accuracy is ", stop.target_accuracy()),
        spec));
  }
  if (stop.has_plateau()) {
    RETURN_IF_ERROR(CheckEvaluates("stop.plateau is set", spec));
  }
  if (spec.optimizer().schedule().name() == "on_plateau") {
    RETURN_IF_ERROR(CheckEvaluates("optimizer.schedule is on_plateau", spec));
  }
  if (stop.steps() == 0 && stop.epochs() == 0 && stop.seconds() == 0 &&
      stop.target_accuracy() == 0 && !stop.has_plateau()) {
    return absl::InvalidArgumentError(
        "stop: one of stop.steps, stop.epochs, stop.seconds and "
        "stop.target_accuracy must be more than 0, or stop.plateau be set, or "
        "the training would never end");
  }
  return absl::OkStatus();
}

absl::Status ValidateLogTensors(const LogTensorsSpec& log) {
  RETURN_IF_ERROR(
      CheckNotNegative("log_tensors.every_steps", log.every_steps()));
  if (log.pattern().empty()) return absl::OkStatus();
  if (log.every_steps() == 0) {
    return absl::InvalidArgumentError(
        "log_tensors.pattern has no effect while log_tensors.every_steps is "
        "0: set it to the steps between two times");
  }
  return NamePattern::Create("log_tensors.pattern", log.pattern()).status();
}

absl::Status ValidateEvaluation(const TrainingSpec& spec) {
  RETURN_IF_ERROR(CheckNotNegative("evaluation.every_steps",
                                   spec.evaluation().every_steps()));
  if (spec.checkpoint().has_keep_best() &&
      spec.evaluation().every_steps() == 0) {
    return absl::InvalidArgumentError(
        "checkpoint.keep_best is set but evaluation.every_steps is 0, so that "
        "only the last model would be evaluated: set evaluation.every_steps to "
        "the global steps between two evaluations");
  }
  RETURN_IF_ERROR(CheckRange<int64_t>(
      "evaluation.batch_size", spec.evaluation().batch_size(), 1, kMaxBatchSize,
      absl::StrCat("from 1 to ", kMaxBatchSize)));
  return ValidateLogTensors(spec.log_tensors());
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
  RETURN_IF_ERROR(Annotate(ExpandBlocks(spec.mutable_model()),
                           absl::StrCat(source, ": model")));
  ReplaceStops(overrides, spec.mutable_stop());
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

std::string StopSource(const TrainingSpec& spec, absl::string_view source,
                       absl::Span<const std::string> overrides) {
  return IsAnyOn(spec.stop(), NamedStops(overrides)) ? "--set"
                                                     : std::string(source);
}

absl::Status ValidateTrainingSpec(const TrainingSpec& spec) {
  if (!spec.table().empty()) {
    return absl::InvalidArgumentError(
        "table: a model of layers has no tables, programs that compute their "
        "own gradients have (leave the field out)");
  }
  RETURN_IF_ERROR(ValidateModel(spec.model()));
  RETURN_IF_ERROR(ValidateInput(spec.input()));
  RETURN_IF_ERROR(ValidateClassWeights(spec));
  RETURN_IF_ERROR(ValidateStream(spec));
  RETURN_IF_ERROR(ValidateWithoutModel(spec));
  RETURN_IF_ERROR(ValidateEvaluation(spec));
  return ValidateStop(spec);
}

TrainingSpec SemanticPart(TrainingSpec spec) {
  spec.clear_checkpoint();
  spec.clear_stop();
  spec.clear_evaluation();
  spec.clear_log_tensors();
  spec.mutable_non_finite()->clear_max_refusals();
  spec.clear_summary();
  // Rounding, as between two kinds of device.
  spec.clear_compute();
  // The places where the same is computed.
  spec.clear_tower();
  spec.mutable_model()->clear_device_rule();
  spec.mutable_model()->clear_pipeline();
  spec.mutable_input()->clear_dir();
  spec.mutable_input()->clear_parts();
  spec.mutable_input()->clear_prefetch();
  spec.mutable_input()->clear_threads();
  for (OptimizerSpec* const optimizer : OptimizersOf(&spec)) {
    SortAttrs(optimizer->mutable_attr());
  }
  for (LayerSpec& layer : *spec.mutable_model()->mutable_layer()) {
    SortAttrs(layer.mutable_attr());
    layer.clear_device();
    layer.clear_split();
  }
  return spec;
}

std::string SemanticText(const TrainingSpec& spec) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(SemanticPart(spec), &text);
  return text;
}

absl::Status CheckTextSize(const TrainingSpec& spec) {
  const auto size = static_cast<int64_t>(SemanticText(spec).size());
  if (size <= kMaxTextBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the training has ", size, " bytes of text, at most ", kMaxTextBytes,
      " can be sent to ps task 0: use fewer layers, or shorter names"));
}

uint64_t SemanticFingerprint(const TrainingSpec& spec) {
  return Fingerprint64(SemanticText(spec));
}

}  // namespace muster
