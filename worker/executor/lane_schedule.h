#ifndef WORKER_EXECUTOR_LANE_SCHEDULE_H_
#define WORKER_EXECUTOR_LANE_SCHEDULE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "worker/backend/device_streams.h"
#include "worker/model/buffer_placement.h"
#include "worker/model/execution_plan.h"

namespace muster {

// The instructions of a plan as lanes, one a device, that run side by side.
struct LaneSchedule {
  struct Event {
    int lane = 0;
    // The instruction after which it is there.
    size_t instruction = 0;
  };

  // By device, its instructions in the plan's order.
  std::vector<std::vector<size_t>> lanes;
  // By instruction, the events of other lanes that it waits for, at most one a
  // lane; those that its lane has waited for already are left out.
  std::vector<std::vector<Event>> waits;
  // By instruction of a device with memory of its own, those before it in its
  // lane that its work waits for: in other streams, at most one each.
  std::vector<std::vector<size_t>> stream_waits;
  // By instruction, whether it is not over when the lane goes on, and others
  // have to do with it: a copy in a stream.
  std::vector<bool> ends_late;
};

// The stream in which a device with memory of its own does an instruction;
// nullopt: the lane's thread does it, as do those of devices without.
std::optional<DeviceStreams::Stream> StreamOf(const ExecutionPlan& plan,
                                              const Instruction& instruction);

// An instruction waits for those before it in the plan that touch the same
// memory, unless both only read. So it finds what they have written, and writes
// over nothing that they still read. The first instruction that touches a
// parameter counts as its writer: that one asks the gate. The same goes for the
// streams of a device.
LaneSchedule ScheduleLanes(const ExecutionPlan& plan,
                           const BufferPlacement& placement);

}  // namespace muster

#endif  // WORKER_EXECUTOR_LANE_SCHEDULE_H_
