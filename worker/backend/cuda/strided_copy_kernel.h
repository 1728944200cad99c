#ifndef WORKER_BACKEND_CUDA_STRIDED_COPY_KERNEL_H_
#define WORKER_BACKEND_CUDA_STRIDED_COPY_KERNEL_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/backend/cuda/kernel_launch.h"

namespace muster {

using Index4 = std::array<int64_t, 4>;

// A copy between tensors of four dimensions: dst[i] = src[i + begin] for each
// index i in [0, dst_sizes), or 0 where i + begin is outside of
// [0, src_sizes). Strides are in elements.
//   reorder: one size, begin 0, two sets of strides
//   pad 2 rows above: begin {0, 0, -2, 0}
//   crop 2 rows above: begin {0, 0, 2, 0}
//   join or take apart: a pointer into the larger one, and its strides
struct StridedCopyShape {
  Index4 dst_sizes;
  Index4 dst_strides;
  Index4 src_sizes;
  Index4 src_strides;
  Index4 begin = {0, 0, 0, 0};
};

// A launcher: device memory that does not overlap, Internal on failure.
absl::Status StridedCopy(const KernelStream& to, const StridedCopyShape& shape,
                         const float* src, float* dst);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_STRIDED_COPY_KERNEL_H_
