#ifndef WORKER_MODEL_MEMORY_PLANNER_H_
#define WORKER_MODEL_MEMORY_PLANNER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// A buffer that a sequence of instructions needs from instruction `first` to
// instruction `last`, both included.
struct BufferRequest {
  int64_t size_bytes = 0;
  int first = 0;
  int last = 0;
};

// Where each buffer lies in one arena.
struct MemoryPlan {
  // One for each request, in their order; multiples of kBufferAlignment.
  std::vector<int64_t> offsets;
  int64_t total_bytes = 0;
};

// A cache line, and the widest vector.
inline constexpr int64_t kBufferAlignment = 64;

// Places buffers so that two that live at the same time never overlap and
// others reuse memory: largest first, each at the lowest offset that is free
// over its whole life (Pisarchyk and Lee, "Efficient memory management for
// deep neural net inference", 2020). Quadratic in the number of buffers.
// REQUIRES: sizes >= 0 and first <= last.
MemoryPlan PlanMemory(absl::Span<const BufferRequest> requests);

}  // namespace muster

#endif  // WORKER_MODEL_MEMORY_PLANNER_H_
