#include "worker/hook/tensor_summaries.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/summary/histogram.h"
#include "common/summary/summary_value.h"
#include "worker/tower/sum_of_squares.h"

namespace muster {
namespace {

// `kind`: "parameter" or "gradient".
void AddTensor(absl::string_view kind, absl::string_view name,
               absl::Span<const float> values, Summary* summary) {
  AddHistogram(absl::StrCat(kind, "s/", name), MakeHistogram(values), summary);
  AddScalar(absl::StrCat(kind, "_norms/", name),
            std::sqrt(SumOfSquares(values)), summary);
}

}  // namespace

TensorSummaries::TensorSummaries(int64_t every_steps, WriteSummary write)
    : write_(std::move(write)), period_(every_steps) {}

absl::Status TensorSummaries::AfterEnter(const EpochRecord& epoch) {
  period_.Start(epoch.global_step);
  summary_.Clear();
  return absl::OkStatus();
}

// The step will be counted as the next one, or later if others are quicker.
absl::StatusOr<PushDecision> TensorSummaries::BeforePush(
    const StepRecord& step) {
  summary_.Clear();
  if (!period_.IsOver(step.global_step + 1)) return PushDecision::kPush;
  RETURN_IF_ERROR(step.FetchTensors());
  for (const StepTensor& tensor : step.tensors) {
    AddTensor("parameter", tensor.name, tensor.value, &summary_);
    if (!tensor.trainable) continue;
    AddTensor("gradient", tensor.name, tensor.gradient, &summary_);
  }
  return PushDecision::kPush;
}

absl::Status TensorSummaries::AfterStep(const StepRecord& step) {
  if (summary_.value().empty()) return absl::OkStatus();
  period_.Start(step.global_step);
  write_(step.global_step, std::exchange(summary_, {}));
  return absl::OkStatus();
}

}  // namespace muster
