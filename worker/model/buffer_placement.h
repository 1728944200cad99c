#ifndef WORKER_MODEL_BUFFER_PLACEMENT_H_
#define WORKER_MODEL_BUFFER_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "worker/model/execution_plan.h"

namespace muster {

// Where the arena buffers of a plan lie.
struct BufferPlacement {
  // One for each buffer; -1 for those that are not in the arena.
  std::vector<int64_t> offsets;
  // One arena a device, and the host's if the plan has that.
  std::vector<int64_t> arena_bytes;
};

// Gives every arena buffer memory in its device's arena, from the first to the
// last instruction that touches it. The result of a primitive that can work in
// place takes the memory of its source, if nobody reads that source later.
BufferPlacement PlaceBuffers(const ExecutionPlan& plan);

}  // namespace muster

#endif  // WORKER_MODEL_BUFFER_PLACEMENT_H_
