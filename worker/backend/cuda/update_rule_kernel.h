#ifndef WORKER_BACKEND_CUDA_UPDATE_RULE_KERNEL_H_
#define WORKER_BACKEND_CUDA_UPDATE_RULE_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/optimizer/update_constants.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// The operands of an update: n elements of each, in device memory.
struct UpdatedElements {
  // More than any rule has.
  static constexpr int kMostSlots = 2;

  const float* gradient = nullptr;
  float* parameter = nullptr;
  // In the rule's order; null for those that it has not.
  float* slots[kMostSlots] = {};
  int64_t n = 0;
};

// A launcher: device memory, Internal on failure, and without constants. One
// update of all elements, to the bit as common/optimizer makes it: every
// operation is rounded by itself.
absl::Status UpdateElements(const KernelStream& to,
                            const UpdateConstants& constants,
                            const UpdatedElements& elements);

// The most that CountNonFinite writes; a fraction of a step's other results.
constexpr int kNonFiniteCounts = 512;

// A launcher. counts[0, kNonFiniteCounts), zeroed before the first call, then
// add up to the number of `values` that are NaN or infinite.
absl::Status CountNonFinite(const KernelStream& to, const float* values,
                            int64_t n, int32_t* counts);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_UPDATE_RULE_KERNEL_H_
