#include "worker/step/step_parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/error_reason.h"
#include "common/tensor/aligned_places.h"

namespace muster {
namespace {

// Memory like that of `values`, each tensor aligned.
std::vector<absl::Span<float>> PlaceLike(
    const std::vector<absl::Span<float>>& values, AlignedBuffer* memory) {
  std::vector<int64_t> elements;
  for (const absl::Span<float>& of : values) {
    elements.push_back(static_cast<int64_t>(of.size()));
  }
  return PlaceSpans<float>(elements, memory);
}

}  // namespace

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
  if (brought_ != nullptr) {
    BeginWithThoseAtHand();
    return absl::OkStatus();
  }
  if (!has_chosen_ && options_.holder != nullptr) RETURN_IF_ERROR(LetHold());
  if (!has_chosen_ && options_.in_place) RETURN_IF_ERROR(ChoosePlace());
  if (in_place_.has_value()) {
    ASSIGN_OR_RETURN(brought_, options_.client->PullVersions());
    BeginWithThoseAtHand();
    return absl::OkStatus();
  }
  pull_ = nullptr;
  versions_ = nullptr;
  {
    absl::MutexLock lock(&mu_);
    is_there_.assign(is_there_.size(), false);
    waits_.clear();
    failure_ = absl::OkStatus();
  }
  pull_begun_ = options_.clock->Now();
  ASSIGN_OR_RETURN(pull_, options_.client->BeginPull(views_, token));
  return absl::OkStatus();
}

absl::Status StepParameters::LetHold() {
  in_place_.reset();
  RETURN_IF_ERROR(options_.client->KeepOnDevice(options_.holder));
  in_place_.emplace();
  has_chosen_ = true;
  return absl::OkStatus();
}

absl::Status StepParameters::ChoosePlace() {
  absl::StatusOr<ParametersInPlace> mapped = options_.client->MapParameters();
  // It may be otherwise when the session has found out what happened; but who
  // finds no memory to map pulls instead.
  if (IsTransient(mapped.status()) &&
      !absl::IsResourceExhausted(mapped.status())) {
    return mapped.status();
  }
  std::vector<const float*> places;
  if (mapped.ok()) {
    for (const TensorView& view : mapped->values) {
      places.push_back(reinterpret_cast<const float*>(view.data));
    }
  } else if (const std::string why(mapped.status().message()); why != said_) {
    said_ = why;
    options_.say(absl::StrCat(
        "pull: IN_PLACE is not possible, pulling consistently: ", why));
  }
  options_.read_from(places);
  // Until now the towers may have read from the one before.
  in_place_.reset();
  if (mapped.ok()) in_place_ = *std::move(mapped);
  has_chosen_ = true;
  return absl::OkStatus();
}

void StepParameters::BeginWithThoseAtHand() {
  if (brought_ != nullptr) {
    versions_ = std::exchange(brought_, nullptr);
    const bool copies = options_.ahead && !in_place_.has_value();
    for (size_t i = 0; copies && i < arrivals_.size(); ++i) {
      std::copy(arrivals_[i].begin(), arrivals_[i].end(),
                options_.values[i].begin());
    }
  }
  pull_ = nullptr;
  pull_begun_ = pulled_ = options_.clock->Now();
  absl::MutexLock lock(&mu_);
  is_there_.assign(is_there_.size(), true);
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

// Of several towers, those of the first one: they follow each other.
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

void StepParameters::Bring(std::shared_ptr<const PulledVersions> versions) {
  brought_ = std::move(versions);
  if (brought_ != nullptr) CountBytes(*brought_);
}

void StepParameters::CountBytes(const PulledVersions& versions) {
  if (in_place_.has_value()) return;
  received_bytes_ += versions.bytes;
  for (const MutableTensorView& view : views_) {
    float32_bytes_ += view.size_bytes;
  }
}

void StepParameters::Drop() {
  brought_ = nullptr;
  pull_ = nullptr;
  has_chosen_ = false;
}

absl::Status StepParameters::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

std::vector<ParameterWait> StepParameters::waits() const {
  absl::MutexLock lock(&mu_);
  return waits_;
}

}  // namespace muster
