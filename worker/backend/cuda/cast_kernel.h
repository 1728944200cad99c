#ifndef WORKER_BACKEND_CUDA_CAST_KERNEL_H_
#define WORKER_BACKEND_CUDA_CAST_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

// Launchers: device memory, `elements` of each operand, Internal on failure.

// Rounds to the nearest bf16, ties to even; NaN stays NaN, and what is too
// large becomes infinity.
absl::Status CastToBf16(const KernelStream& to, const float* src, uint16_t* dst,
                        int64_t elements);
// Exact.
absl::Status CastFromBf16(const KernelStream& to, const uint16_t* src,
                          float* dst, int64_t elements);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CAST_KERNEL_H_
