#include "worker/step_push.h"

#include <cmath>

#include "absl/types/span.h"
#include "common/base/finite.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

bool IsFinite(const TensorView& view) {
  const auto* const values = reinterpret_cast<const float*>(view.data);
  return FirstNonFinite({values, view.size_bytes / sizeof(float)}) < 0;
}

}  // namespace

absl::Status StepPush::Begin(int64_t step, int64_t round) {
  step_ = step;
  round_ = round;
  if (!options_.early) return absl::OkStatus();
  ASSIGN_OR_RETURN(push_, options_.client->BeginPush(
                              step, round, options_.gradients, options_.into));
  return absl::OkStatus();
}

void StepPush::OnForward(double loss) {
  forward_end_ = options_.clock->Now();
  held_ = !options_.allow_non_finite && !std::isfinite(loss);
}

void StepPush::OnGradient(int parameter) {
  backward_end_ = options_.clock->Now();
  if (push_ == nullptr || held_) return;
  held_ =
      !options_.allow_non_finite && !IsFinite(options_.gradients[parameter]);
  if (!held_) push_->Release(parameter);
}

absl::StatusOr<PushOutcome> StepPush::Finish() {
  if (push_ != nullptr) return push_->Finish();
  return options_.client->PushAndWait(step_, options_.gradients, round_,
                                      options_.into);
}

}  // namespace muster
