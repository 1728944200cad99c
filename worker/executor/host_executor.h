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
#include "worker/backend/device_streams.h"
#include "worker/executor/device_lane.h"
#include "worker/executor/lanes.h"
#include "worker/executor/plan_executor.h"
#include "worker/model/buffer_placement.h"

namespace muster {

// Executes a plan of one device that computes in the host's memory, one
// instruction after another, on the calling thread; or one of several as lanes
// with a thread each, in which the gate is asked; the listener is told by the
// calling thread, as of one. Parameters, gradients and whole float32 batches
// are used where they lie.
//
// Lanes may have memory of their own (DeviceLane), if BridgeMemories has seen
// the plan. All of the host's that they copy from and to is pinned then, but
// for what ReadParametersFrom names, and a batch is copied first.
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

  // Errors: InvalidArgument with both numbers if it would hold more; those of
  // DeviceStreams.
  static absl::StatusOr<std::unique_ptr<HostExecutor>> Create(
      const ExecutedModel& model, const MemoryLimits& limits);

  HostExecutor(const HostExecutor&) = delete;
  HostExecutor& operator=(const HostExecutor&) = delete;

  absl::Status Run(const Step& step) override;
  absl::StatusOr<std::vector<absl::Duration>> Measure(
      const Step& step) override;
  void OnParametersMoved() override;
  const void* Result(int buffer) const override { return BufferData(buffer); }
  int64_t arena_bytes() const override;
  int64_t host_bytes() const override;

 private:
  explicit HostExecutor(const ExecutedModel& model);

  absl::Status Allocate(BufferPlacement placement);
  absl::Status CreateDeviceLanes(const BufferPlacement& placement,
                                 const LaneSchedule& schedule);
  absl::Status PinHostMemory();
  int64_t HostArenaBytes() const;
  bool has_devices() const { return device_streams_ != nullptr; }

  // The memory of a buffer; nullptr for those of a batch.
  void* BufferData(int buffer) const;
  void BindBatch(const Batch& batch);
  // Where instructions read a tensor of the batch: in the batch, or in `copy`,
  // which devices copy; null of none.
  const char* Bound(const BatchTensor* tensor, int64_t rows,
                    AlignedBuffer* copy) const;
  std::unique_ptr<Lanes> MakeLanes(LaneSchedule schedule);
  LateWork MakeLateWork();
  absl::Status CheckLossLabels(const Batch& batch) const;
  // Each instruction and all that it begins, in order: how long it takes.
  absl::StatusOr<std::vector<absl::Duration>> MeasureEach(const Step& step);
  void SayStalled(int lane, size_t instruction) const;
  // Asks the gate, and carries out one instruction.
  absl::Status RunInstruction(size_t i, const Step& step);
  absl::Status Dispatch(size_t i);
  absl::Status TellListener(size_t instruction, StepListener* listener) const;

  const ExecutedModel model_;
  // Those of a device; null: all compute in the host's memory.
  DeviceStreams* const device_streams_;
  // By buffer of the plan, if it is in its device's arena; else -1.
  std::vector<int64_t> arena_offsets_;
  // By device, those in the host's memory, and the host's own.
  mutable std::vector<AlignedBuffer> arenas_;
  // The batch's examples, labels and weights, if they cannot be used where they
  // lie.
  AlignedBuffer examples_;
  AlignedBuffer labels_;
  AlignedBuffer weights_;
  // After the memory, so that they go first.
  std::vector<std::unique_ptr<DeviceStreams::Pin>> pins_;
  // By device; null for those that compute in the host's memory.
  std::vector<std::unique_ptr<DeviceLane>> device_lanes_;
  // By instruction.
  std::vector<Operands> operands_;
  // The lanes' while Run runs.
  const Step* step_ = nullptr;
  // Null: there is one device, in the host's memory. Last: its threads use all
  // else.
  std::unique_ptr<Lanes> lanes_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_HOST_EXECUTOR_H_
