#include "worker/step_parameters.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kAlignedFloats = AlignedBuffer::kAlignment / sizeof(float);

// Memory like that of `values`, each tensor aligned.
std::vector<absl::Span<float>> PlaceLike(
    const std::vector<absl::Span<float>>& values, AlignedBuffer* memory) {
  const auto room = [](const absl::Span<float>& of) {
    return (of.size() + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats;
  };
  size_t floats = 0;
  for (const absl::Span<float>& of : values) floats += room(of);
  *memory = AlignedBuffer(floats * sizeof(float));
  std::vector<absl::Span<float>> places;
  float* next = memory->as<float>();
  for (const absl::Span<float>& of : values) {
    places.emplace_back(next, of.size());
    next += room(of);
  }
  return places;
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

void StepParameters::BeginWithThoseAtHand() {
  if (brought_ != nullptr) {
    versions_ = std::exchange(brought_, nullptr);
    for (size_t i = 0; options_.ahead && i < arrivals_.size(); ++i) {
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
  received_bytes_ += versions.bytes;
  for (const MutableTensorView& view : views_) {
    float32_bytes_ += view.size_bytes;
  }
}

void StepParameters::Drop() {
  brought_ = nullptr;
  pull_ = nullptr;
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
