#include "worker/hook/nan_guard.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {

NanGuard::NanGuard(std::string task_name) : task_name_(std::move(task_name)) {}

absl::StatusOr<PushDecision> NanGuard::BeforePush(const StepRecord& step) {
  if (std::isfinite(step.loss)) return PushDecision::kPush;
  return absl::OutOfRangeError(absl::StrCat(
      "loss is ", step.loss, " in step ", step.step, " of ", task_name_,
      " at global step ", step.global_step,
      ": nothing was pushed and the training ends; a smaller learning rate "
      "often helps, the newest checkpoint is unharmed"));
}

}  // namespace muster
