#include "worker/tower/tower_group.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "proto/tensor.pb.h"
#include "worker/tower/gradient_memory.h"
#include "worker/tower/mean.h"

namespace muster {

TowerGroup::TowerGroup(const Options& options)
    : controller_(options.controller),
      devices_make_mean_(options.devices_make_mean),
      accumulate_batches_(options.towers.front().accumulate_batches),
      outcomes_(options.towers.size()),
      steps_(options.towers.size()) {
  assert(controller_ >= (devices_make_mean_ ? 0 : kNoTower) &&
         controller_ < static_cast<int>(options.towers.size()));
  for (const Tower::Options& tower : options.towers) {
    towers_.push_back(std::make_unique<Tower>(tower));
  }
  PlaceGradients();
  for (int i = 1; i < num_towers(); ++i) {
    threads_.push_back(
        std::make_unique<RepeatingThread>([this, i] { RunPhase(i); }));
  }
}

// The mean of the trainable tensors has memory of its own, so that each tower's
// gradient can still be looked at; all else stays where it is.
void TowerGroup::PlaceGradients() {
  Tower& first = *towers_.front();
  const absl::Span<const TensorDef> parameters = first.model().parameters();
  const bool makes_mean = num_towers() > 1 && !devices_make_mean_;
  if (makes_mean) gradients_ = muster::PlaceGradients(model(), &means_);
  gradients_.resize(parameters.size());
  averaged_.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int tensor = static_cast<int>(i);
    const bool is_averaged = parameters[i].kind() == TRAINABLE;
    if (!is_averaged || num_towers() == 1) {
      gradients_[i] = first.gradient(tensor);
    } else if (devices_make_mean_) {
      gradients_[i] = towers_[controller_]->gradient(tensor);
    } else {
      for (const auto& tower : towers_) {
        averaged_[i].push_back(tower->gradient(tensor));
      }
    }
  }
  for (int t = 0; t < num_towers(); ++t) {
    steps_[t].device = towers_[t]->device();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const bool is_mean =
          devices_make_mean_ && parameters[i].kind() == TRAINABLE;
      steps_[t].gradients.push_back(
          is_mean ? gradients_[i] : towers_[t]->gradient(static_cast<int>(i)));
    }
  }
}

absl::Status TowerGroup::Run(absl::Span<const SeededBatch> batches,
                             absl::Span<const SeededBatch> next,
                             StepListener* listener, ParameterGate* gate,
                             absl::Span<DeviceTrace> traces) {
  assert(batches.size() == batches_per_step());
  assert(next.empty() || next.size() == batches_per_step());
  assert(traces.empty() || traces.size() == towers_.size());
  const Tower::Work work{
      batches, next, 0, num_towers(), can_tell() ? listener : nullptr, gate};
  work_ = &work;
  traces_ = traces;
  phase_ = Phase::kCompute;
  for (const auto& thread : threads_) thread->Start();
  Compute(0);
  for (const auto& thread : threads_) thread->Wait();
  RETURN_IF_ERROR(FirstError());
  if (num_towers() == 1 || devices_make_mean_) return absl::OkStatus();
  phase_ = Phase::kMean;
  if (controller_ == 0 || controller_ == kNoTower) {
    WriteMeans();
  } else {
    threads_[controller_ - 1]->Start();
    threads_[controller_ - 1]->Wait();
  }
  return absl::OkStatus();
}

// Those that only ended because of another come last.
absl::Status TowerGroup::FirstError() const {
  absl::Status cancelled;
  for (const absl::Status& outcome : outcomes_) {
    if (!absl::IsCancelled(outcome)) {
      RETURN_IF_ERROR(outcome);
    } else if (cancelled.ok()) {
      cancelled = outcome;
    }
  }
  return cancelled;
}

void TowerGroup::ReadParametersFrom(absl::Span<const float* const> values) {
  for (const auto& tower : towers_) tower->model().ReadParametersFrom(values);
}

void TowerGroup::RunPhase(int tower) {
  if (phase_ == Phase::kCompute) {
    Compute(tower);
  } else {
    WriteMeans();
  }
}

void TowerGroup::Compute(int tower) {
  Tower::Work work = *work_;
  work.first = tower;
  if (!traces_.empty()) work.trace = &traces_[tower];
  absl::Status status = towers_[tower]->Run(work);
  if (num_towers() > 1 && !status.ok()) {
    status = Annotate(status, absl::StrCat("tower ", tower, " on ",
                                           towers_[tower]->device()));
  }
  outcomes_[tower] = std::move(status);
  TowerStep& step = steps_[tower];
  step.loss = towers_[tower]->loss();
  step.correct = towers_[tower]->correct();
  step.examples = towers_[tower]->examples();
}

void TowerGroup::WriteMeans() {
  for (size_t i = 0; i < averaged_.size(); ++i) {
    if (!averaged_[i].empty()) WriteMean(averaged_[i], gradients_[i]);
  }
}

// All towers have equally many rows.
double TowerGroup::loss() const {
  double sum = 0;
  for (const TowerStep& step : steps_) sum += step.loss;
  return sum / num_towers();
}

int64_t TowerGroup::correct() const {
  int64_t sum = 0;
  for (const TowerStep& step : steps_) sum += step.correct;
  return sum;
}

int64_t TowerGroup::examples() const {
  int64_t sum = 0;
  for (const TowerStep& step : steps_) sum += step.examples;
  return sum;
}

}  // namespace muster
