#ifndef WORKER_TOWER_TOWER_H_
#define WORKER_TOWER_TOWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/executor/compiled_model.h"
#include "worker/executor/device_trace.h"
#include "worker/executor/parameter_gate.h"
#include "worker/executor/step_listener.h"
#include "worker/input/batch.h"

namespace muster {

// One replica of the model on one device: runs the batches of its share of a
// step, and holds the mean of their gradients. Allocates nothing after the
// first step. One thread at a time.
class Tower {
 public:
  struct Options {
    // For messages and hooks: "cpu:1".
    std::string device;
    // In train mode; outlives the tower.
    CompiledModel* model = nullptr;
    // Batches of one step.
    int64_t accumulate_batches = 1;
  };
  // The tower's batches of one step are `batches[first]`, [first + stride], ...
  struct Work {
    absl::Span<const SeededBatch> batches;
    // Those of the next step, all or none, as far as they are known.
    absl::Span<const SeededBatch> next;
    int64_t first = 0;
    int64_t stride = 1;
    // Null for none. REQUIRES: a step of the tower is one batch.
    StepListener* listener = nullptr;
    // Null if the parameters are there.
    ParameterGate* gate = nullptr;
    // Null: nobody wants one. Of all batches together.
    DeviceTrace* trace = nullptr;
  };

  explicit Tower(const Options& options);

  Tower(const Tower&) = delete;
  Tower& operator=(const Tower&) = delete;

  // Forward and backward of every batch. Errors: those of CompiledModel::Step.
  absl::Status Run(const Work& work);

  // The mean of the losses of the last Run's batches, and the sums of their
  // correct rows and of their rows.
  double loss() const { return loss_; }
  int64_t correct() const { return correct_; }
  int64_t examples() const { return examples_; }

  // The mean of the batches' gradients (of a state tensor: of the deltas of
  // its moving average) of the last Run.
  absl::Span<float> gradient(int tensor) { return gradients_[tensor]; }

  const std::string& device() const { return options_.device; }
  CompiledModel& model() { return *options_.model; }

 private:
  SeededBatch BatchAfter(const Work& work, int64_t i) const;
  void Accumulate(int64_t done);

  const Options options_;
  // The model's own, or in sums_ if there are several batches.
  std::vector<absl::Span<float>> gradients_;
  AlignedBuffer sums_;
  double loss_ = 0;
  int64_t correct_ = 0;
  int64_t examples_ = 0;
};

}  // namespace muster

#endif  // WORKER_TOWER_TOWER_H_
