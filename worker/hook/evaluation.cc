#include "worker/hook/evaluation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"

namespace muster {

Evaluation::Evaluation(int64_t every_steps, Evaluate evaluate,
                       Reporter reporter)
    : evaluate_(std::move(evaluate)),
      reporter_(std::move(reporter)),
      period_(every_steps) {}

absl::Status Evaluation::AfterEnter(const EpochRecord& epoch) {
  period_.Start(epoch.global_step);
  return absl::OkStatus();
}

absl::Status Evaluation::AfterStep(const StepRecord& step) {
  if (!period_.IsOver(step.global_step)) return absl::OkStatus();
  period_.Start(step.global_step);
  const absl::Status status = Run(step.global_step);
  if (!status.ok()) {
    reporter_.Info(absl::StrCat("no evaluation at step ", step.global_step,
                                ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status Evaluation::AtEnd(const EndRecord& end) {
  if (!end.completed) return absl::OkStatus();
  // One from the middle of the training is not that of its end.
  result_.reset();
  return Run(end.global_step);
}

absl::Status Evaluation::Run(int64_t global_step) {
  ASSIGN_OR_RETURN(result_, evaluate_());
  reporter_.Info(absl::StrFormat("step=%d test_accuracy=%.4f test_loss=%.4f",
                                 global_step, result_->accuracy,
                                 result_->loss));
  for (const Listener& listener : listeners_) listener(global_step, *result_);
  return absl::OkStatus();
}

}  // namespace muster
