#ifndef WORKER_BACKEND_CPU_DNNL_LAYOUT_H_
#define WORKER_BACKEND_CPU_DNNL_LAYOUT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "worker/backend/memory_layout.h"

namespace muster {

// MemoryLayout to oneDNN's memory descriptors and back. The format of a layout
// that is not row-major is "strides S,S,... blocks BD,..." with one stride a
// dimension, in elements between (blocks of) its indices, and one block of B
// indices of dimension D (a, b, c, d), outermost first: nChw8c of [N, 32, H, W]
// is "strides 32HW,8HW,8W,8 blocks 8b". The weights of a grouped convolution
// are [G, O / G, I / G, KH, KW] for oneDNN: their layout has the shape [O, I /
// G, KH, KW] and a format "groups G strides ...", of those five dimensions (a
// to e). float32 only.

// Errors: Unimplemented if it is not a plain or blocked layout.
absl::StatusOr<MemoryLayout> LayoutOf(const dnnl::memory::desc& desc);

// Errors: InvalidArgument if the format is not one of the above.
absl::StatusOr<dnnl::memory::desc> DnnlDescOf(const MemoryLayout& layout);

// Backend::Stacked.
std::optional<MemoryLayout> Stacked(const MemoryLayout& layout, int64_t count);

// Where the element of this index lies, in elements. REQUIRES: a descriptor of
// DnnlDescOf, an index for each dimension.
int64_t OffsetOf(const dnnl::memory::desc& desc,
                 absl::Span<const int64_t> index);

// A descriptor that lets the primitive choose.
dnnl::memory::desc AnyLayout(const Shape& shape);

// Bytes without a meaning for us.
MemoryLayout BytesLayout(int64_t size_bytes);

// The B of a layout that is exactly oneDNN's nChw8c or nChw16c: [N, ceil(C /
// B), H, W, B]. 0 for any other.
int64_t ChannelBlock(const MemoryLayout& layout);

// That layout. REQUIRES: rank 4, block 8 or 16.
MemoryLayout ChannelBlockedLayout(const Shape& shape, int64_t block);

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_DNNL_LAYOUT_H_
