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
  for (const absl::Span<float>& of : arrivals_) {
    into_.push_back(MutableViewOf(of));
  }
}

absl::Status StepParameters::Fetch(const StepToken& token) {
  next_begun_ = options_.clock->Now();
  ASSIGN_OR_RETURN(next_, options_.client->BeginPull(into_, token));
  return absl::OkStatus();
}

absl::Status StepParameters::Begin(const StepToken& token) {
  pull_ = nullptr;
  versions_ = nullptr;
  {
    absl::MutexLock lock(&mu_);
    is_there_.assign(is_there_.size(), false);
    waits_.clear();
    failure_ = absl::OkStatus();
  }
  if (next_ == nullptr) RETURN_IF_ERROR(Fetch(token));
  pull_ = std::move(next_);
  pull_begun_ = next_begun_;
  return absl::OkStatus();
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
  if (options_.ahead) {
    std::copy(arrivals_[parameter].begin(), arrivals_[parameter].end(),
              options_.values[parameter].begin());
  }
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
  for (size_t i = 0; i < into_.size(); ++i) {
    RETURN_IF_ERROR(BeforeUse(static_cast<int>(i)));
  }
  RETURN_IF_ERROR(pull_->Finish());
  versions_ = pull_->versions();
  pulled_ = pull_->ended_at();
  return absl::OkStatus();
}

void StepParameters::Drop() {
  next_ = nullptr;
  pull_ = nullptr;
}

absl::Status StepParameters::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

std::vector<ParameterWait> StepParameters::TakeWaits() {
  absl::MutexLock lock(&mu_);
  return std::exchange(waits_, {});
}

}  // namespace muster
