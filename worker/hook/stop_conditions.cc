#include "worker/hook/stop_conditions.h"

#include <utility>

namespace muster {

StopConditions::StopConditions(const Options& options, RequestStop stop_job)
    : options_(options), stop_job_(std::move(stop_job)) {}

void StopConditions::OnEvaluation(const EvaluationResult& result) {
  accurate_ =
      options_.target_accuracy > 0 &&
      result.metrics.Find("accuracy").value_or(0) >= options_.target_accuracy;
}

absl::Status StopConditions::AfterEnter(const EpochRecord&) {
  accurate_ = false;
  return absl::OkStatus();
}

absl::Status StopConditions::AfterWait(int64_t) {
  if (accurate_) stop_job_("target_accuracy", absl::OkStatus());
  return absl::OkStatus();
}

absl::Status StopConditions::AfterStep(const StepRecord& step) {
  const bool late = options_.after > absl::ZeroDuration() &&
                    options_.trained(step.now) >= options_.after;
  if (accurate_) {
    stop_job_("target_accuracy", absl::OkStatus());
  } else if (late) {
    stop_job_("seconds", absl::OkStatus());
  }
  return absl::OkStatus();
}

}  // namespace muster
