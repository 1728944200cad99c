#include "worker/client/gradual_push.h"

#include <utility>

#include "absl/status/status.h"
#include "worker/client/part_id.h"
#include "worker/client/transfer_plan.h"

namespace muster {

GradualPush::GradualPush(const Clock* clock,
                         std::shared_ptr<const ClientModel> model)
    : model_(std::move(model)),
      released_(model_->tensors.size(), false),
      outcome_(absl::UnknownError("not ended")),
      ended_(clock) {
  for (const std::vector<PlannedPart>& parts : model_->plan.parts) {
    std::vector<int>& missing = missing_.emplace_back();
    for (const PlannedPart& part : parts) {
      missing.push_back(static_cast<int>(part.slices.size()));
    }
  }
}

GradualPush::~GradualPush() {
  if (finished_ || transfer_ == nullptr) return;
  transfer_->Cancel(absl::CancelledError("the step was given up"));
  ended_.Wait();
}

void GradualPush::Release(int tensor) {
  released_[tensor] = true;
  std::vector<PartId> whole;
  for (const PartId& id : model_->plan.parts_of[tensor]) {
    if (--missing_[id.shard][id.part] == 0) whole.push_back(id);
  }
  if (whole.empty()) return;
  has_left_ = true;
  transfer_->OpenParts(whole);
}

void GradualPush::ReleaseOthers() {
  for (size_t tensor = 0; tensor < released_.size(); ++tensor) {
    if (!released_[tensor]) Release(static_cast<int>(tensor));
  }
}

absl::StatusOr<PushOutcome> GradualPush::Finish() {
  ReleaseOthers();
  ended_.Wait();
  finished_ = true;
  return std::move(outcome_);
}

void GradualPush::End(absl::StatusOr<PushOutcome> outcome) {
  outcome_ = std::move(outcome);
  ended_.Notify();
}

}  // namespace muster
