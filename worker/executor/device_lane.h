#ifndef WORKER_EXECUTOR_DEVICE_LANE_H_
#define WORKER_EXECUTOR_DEVICE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/device_streams.h"
#include "worker/executor/lane_schedule.h"
#include "worker/executor/pinned_buffer.h"
#include "worker/executor/plan_executor.h"
#include "worker/model/execution_plan.h"

namespace muster {

// The lane of a device with memory of its own: the device's arena, and the
// streams to which it gives its instructions. Each stream waits for what an
// instruction touches in another one (LaneSchedule::stream_waits); the host
// waits only for copies that others have to do with, and for the end. One
// thread at a time.
class DeviceLane {
 public:
  // `plan` and `streams` outlive the lane. Errors: those of DeviceStreams.
  static absl::StatusOr<std::unique_ptr<DeviceLane>> Create(
      const ExecutionPlan* plan, int device, DeviceStreams* streams,
      const LaneSchedule& schedule, int64_t arena_bytes);

  DeviceLane(const DeviceLane&) = delete;
  DeviceLane& operator=(const DeviceLane&) = delete;

  char* arena() const { return arena_->data(); }
  int64_t arena_bytes() const { return arena_->size_bytes(); }

  // Sets Operands::device_seed of the lane's instructions that have one.
  void BindSeeds(std::vector<Operands>* operands) const;

  // The calling thread begins a step.
  absl::Status Begin(uint64_t step_seed);
  // Gives the instruction to its stream; what the lane's thread does itself is
  // done when it returns.
  absl::Status Execute(size_t instruction, const Operands& operands);
  // Returns when the copy has arrived. REQUIRES: ends_late.
  absl::Status Finish(size_t instruction);
  // Returns when nothing is left in the streams; after a failure whatever they
  // say, with OK.
  absl::Status End(bool has_failed);

 private:
  using Stream = DeviceStreams::Stream;
  using Event = DeviceStreams::Event;

  DeviceLane(const ExecutionPlan* plan, int device, DeviceStreams* streams,
             const LaneSchedule& schedule)
      : plan_(*plan),
        device_(device),
        streams_(*streams),
        stream_waits_(schedule.stream_waits) {}

  absl::Status Allocate(const LaneSchedule& schedule, int64_t arena_bytes);
  int64_t SeedBytes() const {
    return static_cast<int64_t>(seeded_.size() * sizeof(uint64_t));
  }
  absl::Status AwaitOthers(size_t instruction);
  absl::Status AwaitAll();

  const ExecutionPlan& plan_;
  const int device_;
  DeviceStreams& streams_;
  const std::vector<std::vector<size_t>> stream_waits_;
  // The instructions that get a seed, in the order of the seeds.
  std::vector<size_t> seeded_;
  std::unique_ptr<DeviceStreams::Buffer> arena_;
  std::unique_ptr<PinnedBuffer> host_seeds_;
  std::unique_ptr<DeviceStreams::Buffer> device_seeds_;
  // By instruction; null for those that nobody waits for.
  std::vector<std::unique_ptr<Event>> done_;
  // By stream: the end of a step, or its beginning.
  std::vector<std::unique_ptr<Event>> all_done_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_DEVICE_LANE_H_
