#ifndef WORKER_BACKEND_CUDA_POOL_KERNEL_H_
#define WORKER_BACKEND_CUDA_POOL_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"
#include "worker/backend/operation.h"

namespace muster {

// Planes of pixels as they lie: [outer, height * width, inner], row-major, for
// src, and the same with dst's pixels for dst. [N, C, H, W] has N * C outer and
// 1 inner, in nhwc N outer and C inner.
struct PoolShape {
  int64_t outer = 1;
  int64_t inner = 1;
  int64_t height = 1;
  int64_t width = 1;
  int64_t dst_height = 1;
  int64_t dst_width = 1;
  WindowDesc window;
};

// Launchers: device memory, Internal on failure. operation.h has the rules.

// argmax, in the order of dst: the pixel (y * width + x) of src that was taken,
// or -1 where ReLU cut all; null if it is not wanted. REQUIRES: a plane has
// less than 2^31 pixels.
absl::Status MaxPoolForward(const KernelStream& to, const PoolShape& shape,
                            bool relu_before, const float* src, float* dst,
                            int32_t* argmax);
absl::Status MaxPoolBackward(const KernelStream& to, const PoolShape& shape,
                             const int32_t* argmax, const float* diff_dst,
                             float* diff_src);

absl::Status AveragePoolForward(const KernelStream& to, const PoolShape& shape,
                                const float* src, float* dst);
absl::Status AveragePoolBackward(const KernelStream& to, const PoolShape& shape,
                                 const float* diff_dst, float* diff_src);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_POOL_KERNEL_H_
