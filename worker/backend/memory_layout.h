#ifndef WORKER_BACKEND_MEMORY_LAYOUT_H_
#define WORKER_BACKEND_MEMORY_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"

namespace muster {

// How the elements of one operand lie in memory. A value; two operands may
// share memory without a reorder exactly if their layouts are equal.
struct MemoryLayout {
  DataType dtype = FLOAT32;
  // Logical dimensions: activations [N, C, H, W] or [N, I]; convolution
  // weights [O, I, KH, KW]; dense weights [O, I]; bias [O].
  Shape shape;
  // "" is row-major without gaps. Any other text belongs to the backend that
  // made it, and only its reorder reads it.
  std::string format;
  // Bytes to allocate, aligned to 64; more than the elements need if the
  // format pads. Padding is zero after every primitive, and must be zero
  // before.
  int64_t size_bytes = 0;

  // The canonical layout.
  static MemoryLayout RowMajor(DataType dtype, const Shape& shape);

  bool is_row_major() const { return format.empty(); }

  // "float32 [128, 32, 28, 28] row-major"
  std::string ToString() const;

  friend bool operator==(const MemoryLayout& a, const MemoryLayout& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.format == b.format &&
           a.size_bytes == b.size_bytes;
  }
  friend bool operator!=(const MemoryLayout& a, const MemoryLayout& b) {
    return !(a == b);
  }
};

// The layout of `count` row-major tensors of `layout`, one behind another, as
// one of `count` times the rows; nullopt if it is not row-major. REQUIRES: rank
// 1 or more.
std::optional<MemoryLayout> StackRowMajor(const MemoryLayout& layout,
                                          int64_t count);

}  // namespace muster

#endif  // WORKER_BACKEND_MEMORY_LAYOUT_H_
