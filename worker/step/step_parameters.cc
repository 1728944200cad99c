#include "worker/step/step_parameters.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/tower/gradient_memory.h"

namespace muster {

StepParameters::StepParameters(Options options)
    : options_(std::move(options)),
      arrivals_(options_.ahead ? PlaceLike(options_.values, &memory_)
                               : options_.values),
      is_there_(options_.values.size(), false) {
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    into_.push_back(MutableViewOf(arrivals_[i]));
    views_.push_back(MutableViewOf(options_.values[i]));
  }
}

absl::Status StepParameters::Begin(const StepToken& token) {
  if (brought_ == nullptr) {
    ASSIGN_OR_RETURN(brought_, FindVersions());
  }
  if (brought_ == nullptr) return BeginPull(token);
  BeginWithThoseAtHand();
  return absl::OkStatus();
}

absl::Status StepParameters::BeginPull(const StepToken& token) {
  pull_ = nullptr;
  versions_ = nullptr;
  ResetUse(/*is_there=*/false);
  pull_begun_ = options_.clock->Now();
  ASSIGN_OR_RETURN(pull_, is_in_place()
                              ? options_.client->BeginPullInPlace(token)
                              : options_.client->BeginPull(views_, token));
  return absl::OkStatus();
}

void StepParameters::BeginWithThoseAtHand() {
  if (brought_ != nullptr) {
    versions_ = std::exchange(brought_, nullptr);
    const bool copies = options_.ahead && !is_in_place();
    for (size_t i = 0; copies && i < arrivals_.size(); ++i) {
      if (!options_.frozen.empty() && options_.frozen[i]) continue;
      std::copy(arrivals_[i].begin(), arrivals_[i].end(),
                options_.values[i].begin());
    }
  }
  pull_ = nullptr;
  pull_begun_ = pulled_ = options_.clock->Now();
  ResetUse(/*is_there=*/true);
}

void StepParameters::ResetUse(bool is_there) {
  absl::MutexLock lock(&mu_);
  is_there_.assign(is_there_.size(), is_there);
  waits_.clear();
  failure_ = absl::OkStatus();
}

absl::Status StepParameters::BeforeUse(int parameter) {
  {
    absl::MutexLock lock(&mu_);
    if (is_there_[parameter]) return absl::OkStatus();
  }
  const absl::Time begun = options_.clock->Now();
  const bool waits = !pull_->IsReady(parameter);
  const absl::Status status = pull_->Await(parameter);
  absl::MutexLock lock(&mu_);
  failure_.Update(status);
  if (!status.ok() || is_there_[parameter]) return status;
  is_there_[parameter] = true;
  if (waits) AddWait(parameter, begun);
  return absl::OkStatus();
}

// Several towers wait as the first one does: the waits follow each other.
void StepParameters::AddWait(int parameter, absl::Time begun) {
  ParameterWait wait;
  wait.tensor = parameter;
  wait.from = waits_.empty() ? begun : std::max(begun, waits_.back().until);
  wait.until = options_.clock->Now();
  waits_.push_back(wait);
}

absl::Status StepParameters::Finish() {
  if (pull_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < views_.size(); ++i) {
    RETURN_IF_ERROR(BeforeUse(static_cast<int>(i)));
  }
  RETURN_IF_ERROR(pull_->Finish());
  if (versions_ == nullptr) CountBytes(*pull_->versions());
  versions_ = pull_->versions();
  pulled_ = pull_->ended_at();
  return absl::OkStatus();
}

absl::Status StepParameters::OnComputed(const absl::Status& computed,
                                        StepTimes* times) {
  {
    absl::MutexLock lock(&mu_);
    // As the pull says it, without the tower that has found it out.
    RETURN_IF_ERROR(failure_);
  }
  RETURN_IF_ERROR(computed);
  RETURN_IF_ERROR(Finish());
  times->pull_begun = pull_begun_;
  times->pulled = pulled_;
  absl::MutexLock lock(&mu_);
  times->waits = waits_;
  return absl::OkStatus();
}

void StepParameters::Bring(std::shared_ptr<const PulledVersions> versions) {
  brought_ = std::move(versions);
  if (brought_ != nullptr) CountBytes(*brought_);
}

void StepParameters::CountBytes(const PulledVersions& versions) {
  received_bytes_ += versions.bytes;
  others_bytes_ += versions.others_bytes;
  float32_bytes_ += versions.float32_bytes;
}

void StepParameters::Drop() {
  brought_ = nullptr;
  pull_ = nullptr;
}

}  // namespace muster
