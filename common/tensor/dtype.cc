#include "common/tensor/dtype.h"

namespace muster {

size_t SizeOf(DataType dtype) {
  switch (dtype) {
    case FLOAT32:
    case INT32:
      return 4;
    case FLOAT64:
    case INT64:
      return 8;
    case UINT8:
      return 1;
    default:
      return 0;
  }
}

absl::string_view DataTypeName(DataType dtype) {
  switch (dtype) {
    case FLOAT32:
      return "float32";
    case FLOAT64:
      return "float64";
    case INT64:
      return "int64";
    case INT32:
      return "int32";
    case UINT8:
      return "uint8";
    default:
      return "unspecified";
  }
}

}  // namespace muster
