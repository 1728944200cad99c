#include "worker/backend/cuda/cuda_layout.h"

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kNhwc[] = "nhwc";
constexpr char kKrsc[] = "krsc";

// Dimension 1 is the last in memory.
MemoryLayout ChannelsLast(const Shape& shape, const char* format) {
  MemoryLayout layout = MemoryLayout::RowMajor(FLOAT32, shape);
  if (shape.dim(1) != 1) layout.format = format;
  return layout;
}

// Strides of `sizes` that lie in memory in `order`, the last dimension
// innermost.
Index4 StridesInOrder(const Index4& sizes, const std::array<int, 4>& order) {
  Index4 strides;
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return strides;
}

}  // namespace

MemoryLayout NhwcLayout(const Shape& shape) {
  return ChannelsLast(shape, kNhwc);
}

MemoryLayout KrscLayout(const Shape& shape) {
  return ChannelsLast(shape, kKrsc);
}

bool IsNhwc(const MemoryLayout& layout) { return layout.format == kNhwc; }

MemoryLayout LayoutBeside(const MemoryLayout& other, const Shape& shape) {
  return IsNhwc(other) ? NhwcLayout(shape)
                       : MemoryLayout::RowMajor(FLOAT32, shape);
}

absl::StatusOr<StridedShape> StridedShapeOf(const MemoryLayout& layout) {
  const int rank = layout.shape.rank();
  const bool channels_last = layout.format == kNhwc || layout.format == kKrsc;
  if (!layout.is_row_major() && !(channels_last && rank == 4)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the cuda backend wants row-major, nhwc or krsc of rank 4, found ",
        layout.ToString()));
  }
  if (rank > 4) {
    return absl::UnimplementedError(
        absl::StrCat("the cuda backend reorders at most 4 dimensions, found ",
                     layout.ToString()));
  }
  StridedShape result = {{1, 1, 1, 1}, {}};
  for (int i = 0; i < rank; ++i) result.sizes[i] = layout.shape.dim(i);
  result.strides = channels_last ? StridesInOrder(result.sizes, {0, 2, 3, 1})
                                 : StridesInOrder(result.sizes, {0, 1, 2, 3});
  return result;
}

}  // namespace muster
