#include "worker/step/step_push.h"

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

absl::Status StepPush::Begin() {
  if (push_ != nullptr) return absl::OkStatus();
  absl::Span<const MutableTensorView> into;
  if (options_.brings_values) into = options_.parameters->into();
  ASSIGN_OR_RETURN(
      push_, options_.client->BeginPush(step_, round_, options_.gradients, into,
                                        options_.parameters->versions()));
  return absl::OkStatus();
}

absl::Status StepPush::OnForward(double loss) {
  forward_end_ = options_.clock->Now();
  held_ = !options_.allow_non_finite && !std::isfinite(loss);
  if (!options_.early || held_) return absl::OkStatus();
  RETURN_IF_ERROR(options_.parameters->Finish());
  return Begin();
}

void StepPush::OnGradient(int parameter) {
  backward_end_ = options_.clock->Now();
  if (push_ == nullptr || held_) return;
  held_ =
      !options_.allow_non_finite && !IsFinite(options_.gradients[parameter]);
  if (!held_) push_->Release(parameter);
}

absl::Status StepPush::Leave() {
  RETURN_IF_ERROR(Begin());
  push_->ReleaseOthers();
  return absl::OkStatus();
}

absl::StatusOr<PushResult> StepPush::Finish() {
  RETURN_IF_ERROR(Leave());
  return push_->Finish();
}

}  // namespace muster
