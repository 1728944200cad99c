#ifndef WORKER_INPUT_MAP_ROW_SPEC_H_
#define WORKER_INPUT_MAP_ROW_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "proto/tensor.pb.h"

namespace muster {

// The type and shape of one row's values: UINT8 or FLOAT32, an image [channels,
// height, width] or features [n].
struct RowSpec {
  DataType dtype = FLOAT32;
  Shape shape;

  bool is_image() const { return shape.rank() == 3; }
  int64_t num_bytes() const {
    return shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
  }
  // "uint8 [3, 32, 32]"
  std::string ToString() const;

  friend bool operator==(const RowSpec& a, const RowSpec& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
};

// Errors: InvalidArgument unless the spec is as above, with one or more values.
absl::Status CheckRowSpec(const RowSpec& spec);
// Errors: InvalidArgument for features.
absl::Status CheckImage(const RowSpec& spec);
// Errors: InvalidArgument for another type.
absl::Status CheckDtype(const RowSpec& spec, DataType wanted);

// A row's bytes as its values. REQUIRES: the row is aligned for T.
template <typename T>
absl::Span<const T> RowValues(absl::Span<const char> row) {
  return {reinterpret_cast<const T*>(row.data()), row.size() / sizeof(T)};
}
template <typename T>
absl::Span<T> RowValues(absl::Span<char> row) {
  return {reinterpret_cast<T*>(row.data()), row.size() / sizeof(T)};
}

}  // namespace muster

#endif  // WORKER_INPUT_MAP_ROW_SPEC_H_
