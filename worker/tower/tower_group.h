#ifndef WORKER_TOWER_TOWER_GROUP_H_
#define WORKER_TOWER_TOWER_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/executor/compiled_model.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/repeating_thread.h"
#include "worker/executor/step_listener.h"
#include "worker/input/batch.h"
#include "worker/tower/computed_step.h"
#include "worker/tower/tower.h"

namespace muster {

// The towers of one worker: they compute one step side by side, each on a
// thread of its own (the first on the caller's), and the mean of their
// gradients is made on the controller device, in the order of the towers, so
// that every run gives the same bits. All read the parameters of the first
// tower's model: compile the others with CompileOptions::parameters_of.
//
// One tower has no thread, no copy and no mean: its gradients stay where the
// model computes them. A state tensor's delta is always that of the first
// tower. Allocates nothing after the first step. One thread.
class TowerGroup {
 public:
  static constexpr int kNoTower = -1;

  struct Options {
    // One a tower, alike but for the device; at least one.
    std::vector<Tower::Options> towers;
    // The tower on whose device, thread and memory the mean is made; kNoTower:
    // on the caller's thread, in the host's.
    int controller = 0;
    // The models were compiled with a common DeviceMean: the controller's,
    // which is a tower, has what the devices made of all gradients, and keeps
    // it.
    bool devices_make_mean = false;
  };

  explicit TowerGroup(const Options& options);

  TowerGroup(const TowerGroup&) = delete;
  TowerGroup& operator=(const TowerGroup&) = delete;

  // Computes one step: the i-th batch of tower t is
  // batches[i * num_towers() + t]. `next` are those of the step after it, if
  // they are known (CompiledModel::Step). Errors: of the first tower that has
  // one, those of CompiledModel::Step; the gradients are then of no use. If
  // can_tell(), `listener` (null for none) hears of it on this thread. Every
  // tower asks `gate` (null if the parameters are there) on its own, and
  // appends what its device does to its own of `traces` (empty: not wanted).
  // REQUIRES: batches_per_step() of them, and of the next ones, or none; no
  // traces, or one a tower.
  absl::Status Run(absl::Span<const SeededBatch> batches,
                   absl::Span<const SeededBatch> next = {},
                   StepListener* listener = nullptr,
                   ParameterGate* gate = nullptr,
                   absl::Span<DeviceTrace> traces = {});

  // A step is one batch of one tower, so that what its model computes is what
  // is pushed; else a gradient is final only when all of Run is over.
  bool can_tell() const { return batches_per_step() == 1; }

  // CompiledModel::ReadParametersFrom, of every tower.
  void ReadParametersFrom(absl::Span<const float* const> values);

  // The last Run's mean over all rows, and its sums.
  double loss() const;
  int64_t correct() const;
  int64_t examples() const;
  // The mean over all rows, to be pushed; it may be changed before. `tensor`
  // counts as in model().parameters().
  absl::Span<float> gradient(int tensor) { return gradients_[tensor]; }
  // The same of each tower by itself; the mean where the devices make it.
  absl::Span<const TowerStep> steps() const { return steps_; }

  int num_towers() const { return static_cast<int>(towers_.size()); }
  int64_t accumulate_batches() const { return accumulate_batches_; }
  int64_t batches_per_step() const {
    return num_towers() * accumulate_batches_;
  }
  // The first tower's: its parameters are everyone's.
  CompiledModel& model() { return towers_.front()->model(); }

 private:
  // The work of the threads when they are started.
  enum class Phase { kCompute, kMean };

  void PlaceGradients();
  void RunPhase(int tower);
  void Compute(int tower);
  void WriteMeans();

  absl::Status FirstError() const;

  // Constant after construction.
  const int controller_;
  const bool devices_make_mean_;
  const int64_t accumulate_batches_;
  std::vector<std::unique_ptr<Tower>> towers_;
  // By tensor: what is averaged, by tower; empty for what is not.
  std::vector<std::vector<absl::Span<const float>>> averaged_;
  std::vector<absl::Span<float>> gradients_;
  AlignedBuffer means_;

  // The caller's, and while a phase runs, the threads': written before it.
  Phase phase_ = Phase::kCompute;
  const Tower::Work* work_ = nullptr;
  absl::Span<DeviceTrace> traces_;
  // By tower, each written by its own thread.
  std::vector<absl::Status> outcomes_;
  std::vector<TowerStep> steps_;

  // One for every tower but the first. Last, so that they end before all else.
  std::vector<std::unique_ptr<RepeatingThread>> threads_;
};

}  // namespace muster

#endif  // WORKER_TOWER_TOWER_GROUP_H_
