// The layouts of the cuda backend. None has gaps: each is some order of the
// elements.
#ifndef WORKER_BACKEND_CUDA_CUDA_LAYOUT_H_
#define WORKER_BACKEND_CUDA_CUDA_LAYOUT_H_

#include "absl/status/statusor.h"
#include "worker/backend/cuda/strided_copy_kernel.h"
#include "worker/backend/memory_layout.h"

namespace muster {

// Activations [N, C, H, W] in the order N, H, W, C: format "nhwc", or row-major
// where C is 1 and both orders are the same bytes. REQUIRES: rank 4.
MemoryLayout NhwcLayout(const Shape& shape);

// Convolution weights [O, I, KH, KW] in the order O, KH, KW, I: format "krsc",
// or row-major where I is 1. REQUIRES: rank 4.
MemoryLayout KrscLayout(const Shape& shape);

// Format "nhwc".
bool IsNhwc(const MemoryLayout& layout);

// The layout of an activation of `shape` beside `other`: nhwc if that is, else
// row-major.
MemoryLayout LayoutBeside(const MemoryLayout& other, const Shape& shape);

// The sizes of `layout` in four dimensions, and how many elements lie between
// neighbours along each. Errors: InvalidArgument if the format is none of the
// above for this shape, Unimplemented if row-major dimensions are over 4.
struct StridedShape {
  Index4 sizes;
  Index4 strides;
};
absl::StatusOr<StridedShape> StridedShapeOf(const MemoryLayout& layout);

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_CUDA_LAYOUT_H_
