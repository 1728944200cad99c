#ifndef WORKER_BACKEND_CUDA_ELEMENTWISE_KERNEL_H_
#define WORKER_BACKEND_CUDA_ELEMENTWISE_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/backend/cuda/kernel_launch.h"
#include "worker/backend/operation.h"

namespace muster {

// Launchers: device memory in any order of elements, Internal on failure.

// dst = activation(src), NaN of NaN. dst may be src.
absl::Status ActivationForward(const KernelStream& to,
                               const ActivationDesc& desc, const float* src,
                               float* dst, int64_t elements);

// diff_src = diff_dst * the derivative, a function of forward's dst
// (operation.h). diff_src may be diff_dst.
absl::Status ActivationBackward(const KernelStream& to,
                                const ActivationDesc& desc, const float* dst,
                                const float* diff_dst, float* diff_src,
                                int64_t elements);

// Adds bias[c] to each row of dst [rows, channels], and with `relu` takes
// max(0, .) of it, NaN of NaN.
absl::Status AddBias(const KernelStream& to, const float* bias,
                     int64_t channels, bool relu, float* dst, int64_t rows);

// dst = (srcs[0] + srcs[1] + ...) / divisor, added from the left. dst may be
// srcs[0]. Several launches for many sources. REQUIRES: one source at least.
absl::Status DividedSum(const KernelStream& to,
                        absl::Span<const float* const> srcs, float divisor,
                        float* dst, int64_t elements);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_ELEMENTWISE_KERNEL_H_
