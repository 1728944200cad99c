#ifndef COMMON_TENSOR_DTYPE_H_
#define COMMON_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "proto/tensor.pb.h"

namespace muster {

// Bytes of one element; 0 for an unspecified or unknown type.
size_t SizeOf(DataType dtype);

// "float32"; "unspecified" for an unknown type.
absl::string_view DataTypeName(DataType dtype);

// The DataType of a C++ element type.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<float> {
  static constexpr DataType kValue = FLOAT32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType kValue = FLOAT64;
};
template <>
struct DataTypeOf<int64_t> {
  static constexpr DataType kValue = INT64;
};
template <>
struct DataTypeOf<int32_t> {
  static constexpr DataType kValue = INT32;
};
template <>
struct DataTypeOf<uint8_t> {
  static constexpr DataType kValue = UINT8;
};

}  // namespace muster

#endif  // COMMON_TENSOR_DTYPE_H_
