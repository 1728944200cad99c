#include "worker/client/gradual_push.h"

#include <utility>

#include "absl/status/status.h"
#include "worker/client/transfer_plan.h"

namespace muster {

GradualPush::GradualPush(const Clock* clock, const ClientModel& model)
    : parts_of_(model.tensors.size()),
      outcome_(absl::UnknownError("not ended")),
      ended_(clock) {
  const auto& parts = model.plan.parts;
  for (size_t shard = 0; shard < parts.size(); ++shard) {
    missing_.emplace_back();
    for (size_t part = 0; part < parts[shard].size(); ++part) {
      const std::vector<PlannedSlice>& slices = parts[shard][part].slices;
      missing_[shard].push_back(static_cast<int>(slices.size()));
      for (const PlannedSlice& slice : slices) {
        parts_of_[slice.tensor].push_back(
            {static_cast<int>(shard), static_cast<int>(part)});
      }
    }
  }
}

GradualPush::~GradualPush() {
  if (finished_ || transfer_ == nullptr) return;
  transfer_->Cancel(absl::CancelledError("the step was given up"));
  ended_.Wait();
}

void GradualPush::Release(int tensor) {
  std::vector<TransferMachine::PartId> whole;
  for (const TransferMachine::PartId& id : parts_of_[tensor]) {
    if (--missing_[id.shard][id.part] == 0) whole.push_back(id);
  }
  parts_of_[tensor].clear();
  if (whole.empty()) return;
  has_left_ = true;
  transfer_->OpenParts(whole);
}

absl::StatusOr<PushOutcome> GradualPush::Finish() {
  for (size_t tensor = 0; tensor < parts_of_.size(); ++tensor) {
    Release(static_cast<int>(tensor));
  }
  ended_.Wait();
  finished_ = true;
  return std::move(outcome_);
}

void GradualPush::End(absl::StatusOr<PushOutcome> outcome) {
  outcome_ = std::move(outcome);
  ended_.Notify();
}

}  // namespace muster
