#ifndef WORKER_EXECUTOR_HOST_EXECUTOR_H_
#define WORKER_EXECUTOR_HOST_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/aligned_buffer.h"
#include "worker/executor/lanes.h"
#include "worker/executor/plan_executor.h"
#include "worker/model/buffer_placement.h"

namespace muster {

// Executes a plan of devices that compute in the host's memory: of one device
// one instruction after another, on the calling thread, of several as lanes
// with a thread each, in which the gate is asked; the listener is told by the
// calling thread, as of one. Parameters, gradients and whole float32 batches
// are used where they lie.
class HostExecutor : public PlanExecutor {
 public:
  struct MemoryLimits {
    // The most for all devices together, and what the model holds already.
    int64_t total_bytes = std::numeric_limits<int64_t>::max();
    int64_t taken_bytes = 0;
    // The most for each device: its arena, and the parameters that it is the
    // first to read, with their gradients.
    int64_t device_bytes = std::numeric_limits<int64_t>::max();
  };

  // Errors: InvalidArgument with both numbers if it would hold more.
  static absl::StatusOr<std::unique_ptr<HostExecutor>> Create(
      const ExecutedModel& model, const MemoryLimits& limits);

  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;

  absl::Status Run(const Step& step) override;
  absl::StatusOr<std::vector<absl::Duration>> Measure(
      const Step& step) override;
  void OnParametersMoved() override;
  const void* Result(int buffer) const override { return BufferData(buffer); }
  int64_t arena_bytes() const override {
    int64_t bytes = 0;
    for (const AlignedBuffer& arena : arenas_) {
      bytes += static_cast<int64_t>(arena.size_bytes());
    }
    return bytes;
  }
  int64_t host_bytes() const override { return arena_bytes(); }

 private:
  HostExecutor(const ExecutedModel& model, BufferPlacement placement);

  // The memory of a buffer; nullptr for those of a batch.
  void* BufferData(int buffer) const;
  void BindBatch(const Batch& batch);
  std::unique_ptr<Lanes> MakeLanes(const BufferPlacement& placement);
  void SayStalled(int lane, size_t instruction) const;
  // Asks the gate, and carries out one instruction.
  absl::Status RunInstruction(size_t i, const Step& step);
  absl::Status Dispatch(const Instruction& instruction,
                        const Operands& operands) const;
  absl::Status TellListener(size_t instruction, StepListener* listener) const;

  const ExecutedModel model_;
  // By buffer of the plan, if it is in its device's arena; else -1.
  std::vector<int64_t> arena_offsets_;
  // By device.
  mutable std::vector<AlignedBuffer> arenas_;
  // The batch's examples, if they cannot be used where they lie.
  AlignedBuffer examples_;
  // By instruction.
  std::vector<Operands> operands_;
  // The lanes' while Run runs.
  const Step* step_ = nullptr;
  // Null: there is one device. Last: its threads use all else.
  std::unique_ptr<Lanes> lanes_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_HOST_EXECUTOR_H_
