#ifndef WORKER_BACKEND_CUDA_DROPOUT_KERNEL_H_
#define WORKER_BACKEND_CUDA_DROPOUT_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"
#include "worker/backend/element_runs.h"

namespace muster {

// Launchers: device memory, `elements` of each operand, Internal on failure.

// mask = DropoutMask(rate, *seed) of the elements that `runs` says, one byte
// each; dst = mask ? src / (1 - rate) : 0. The seed is read when the kernel
// runs. dst may be src.
absl::Status DropoutForward(const KernelStream& to, double rate,
                            const uint64_t* seed, const float* src, float* dst,
                            uint8_t* mask, int64_t elements,
                            const ElementRuns& runs);

// diff_src = mask ? diff_dst / (1 - rate) : 0. diff_src may be diff_dst.
absl::Status DropoutBackward(const KernelStream& to, double rate,
                             const uint8_t* mask, const float* diff_dst,
                             float* diff_src, int64_t elements);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_DROPOUT_KERNEL_H_
