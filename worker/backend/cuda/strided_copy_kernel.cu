#include <algorithm>
#include <utility>

#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/cuda/strided_copy_kernel.h"

namespace muster {
namespace {

// The dimensions by falling stride in dst, so that neighbouring threads write
// neighbouring elements. A stable sort would allocate.
StridedCopyShape InOrderOfDst(const StridedCopyShape& shape) {
  std::array<int, 4> order = {0, 1, 2, 3};
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(shape.dst_strides[b], a) <
           std::make_pair(shape.dst_strides[a], b);
  });
  StridedCopyShape result = shape;
  for (int i = 0; i < 4; ++i) {
    result.dst_sizes[i] = shape.dst_sizes[order[i]];
    result.dst_strides[i] = shape.dst_strides[order[i]];
    result.src_sizes[i] = shape.src_sizes[order[i]];
    result.src_strides[i] = shape.src_strides[order[i]];
    result.begin[i] = shape.begin[order[i]];
  }
  return result;
}

__global__ void StridedCopyKernel(StridedCopyShape shape, int64_t elements,
                                  const float* src, float* dst) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    int64_t rest = i, to = 0, from = 0;
    bool is_inside = true;
    for (int d = 3; d >= 0; --d) {
      const int64_t index = rest % shape.dst_sizes[d];
      rest /= shape.dst_sizes[d];
      to += index * shape.dst_strides[d];
      const int64_t src_index = index + shape.begin[d];
      is_inside = is_inside && src_index >= 0 && src_index < shape.src_sizes[d];
      from += src_index * shape.src_strides[d];
    }
    dst[to] = is_inside ? src[from] : 0;
  }
}

}  // namespace

absl::Status StridedCopy(const KernelStream& to, const StridedCopyShape& shape,
                         const float* src, float* dst) {
  const Index4& sizes = shape.dst_sizes;
  const int64_t elements = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  return Launch(to, "StridedCopy", StridedCopyKernel, BlocksFor(elements),
                kBlockThreads, InOrderOfDst(shape), elements, src, dst);
}

}  // namespace muster
