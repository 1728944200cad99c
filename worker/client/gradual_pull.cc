#include "worker/client/gradual_pull.h"

#include <utility>

#include "worker/client/transfer_plan.h"

namespace muster {

GradualPull::GradualPull(const Clock* clock,
                         std::shared_ptr<const ClientModel> model)
    : clock_(clock), model_(std::move(model)) {
  for (const std::vector<PartId>& parts : model_->plan.parts_of) {
    missing_.push_back(static_cast<int>(parts.size()));
  }
}

GradualPull::~GradualPull() {
  // Nothing happens to one that has ended.
  transfer_->Cancel(absl::CancelledError("the pull was given up"));
  Finish().IgnoreError();
}

absl::Status GradualPull::Await(int tensor) {
  const auto is_ready = [this, tensor]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return IsReadyLocked(tensor);
  };
  absl::MutexLock lock(&mu_);
  clock_->Await(&mu_, absl::Condition(&is_ready), absl::InfiniteDuration());
  return missing_[tensor] == 0 ? absl::OkStatus() : outcome_;
}

bool GradualPull::IsReady(int tensor) const {
  absl::MutexLock lock(&mu_);
  return IsReadyLocked(tensor);
}

absl::Status GradualPull::Finish() {
  absl::MutexLock lock(&mu_);
  clock_->Await(&mu_, absl::Condition(&ended_), absl::InfiniteDuration());
  return outcome_;
}

absl::Time GradualPull::ended_at() const {
  absl::MutexLock lock(&mu_);
  return ended_at_;
}

std::shared_ptr<const PulledVersions> GradualPull::versions() const {
  absl::MutexLock lock(&mu_);
  return versions_;
}

void GradualPull::Arrive(PartId part) {
  absl::MutexLock lock(&mu_);
  for (const PlannedSlice& slice :
       model_->plan.parts[part.shard][part.part].slices) {
    --missing_[slice.tensor];
  }
}

void GradualPull::End(const absl::Status& status,
                      std::shared_ptr<const PulledVersions> versions) {
  absl::MutexLock lock(&mu_);
  outcome_ = status;
  versions_ = std::move(versions);
  ended_at_ = clock_->Now();
  ended_ = true;
}

}  // namespace muster
