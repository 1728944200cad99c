#include "common/tensor/shape.h"

#include <cassert>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

std::string DimsToString(absl::Span<const int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

absl::Status Check(absl::Span<const int64_t> dims) {
  if (dims.size() > Shape::kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape of rank ", dims.size(), ", at most ",
                     Shape::kMaxRank, " is supported"));
  }
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", DimsToString(dims), " has a negative size"));
    }
    if (__builtin_mul_overflow(elements, dim, &elements)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", DimsToString(dims), " has more elements than 2^63"));
    }
  }
  if (elements > std::numeric_limits<int64_t>::max() / 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", DimsToString(dims), " is too large"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t NumElements(absl::Span<const int64_t> dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

Shape::Shape(std::initializer_list<int64_t> dims) : dims_(dims) {
  assert(Check(dims_).ok());
}

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  absl::Status status = Check(dims);
  if (!status.ok()) return status;
  Shape shape;
  shape.dims_.assign(dims.begin(), dims.end());
  return shape;
}

std::string Shape::ToString() const { return DimsToString(dims_); }

}  // namespace muster
