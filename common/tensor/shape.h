#ifndef COMMON_TENSOR_SHAPE_H_
#define COMMON_TENSOR_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// The elements of a tensor with these dimensions, which fit into a Shape.
int64_t NumElements(absl::Span<const int64_t> dims);

// The dimensions of a tensor, row-major. An empty shape is a scalar. A Shape
// always holds: rank <= kMaxRank, every dimension >= 0, and the number of
// elements times 8 bytes fits in int64_t.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  // For shapes that our own code makes. REQUIRES: what a Shape holds.
  Shape(std::initializer_list<int64_t> dims);

  // Checks dimensions from outside. Errors: InvalidArgument.
  static absl::StatusOr<Shape> Create(absl::Span<const int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t num_elements() const { return NumElements(dims_); }

  // "[5, 5, 1, 32]"; "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.dims_ == b.dims_;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  absl::InlinedVector<int64_t, 4> dims_;
};

}  // namespace muster

#endif  // COMMON_TENSOR_SHAPE_H_
