#include "worker/backend/memory_layout.h"

#include "absl/strings/str_cat.h"
#include "common/tensor/dtype.h"

namespace muster {

MemoryLayout MemoryLayout::RowMajor(DataType dtype, const Shape& shape) {
  const int64_t size = static_cast<int64_t>(SizeOf(dtype));
  return {dtype, shape, "", shape.num_elements() * size};
}

std::string MemoryLayout::ToString() const {
  return absl::StrCat(DataTypeName(dtype), " ", shape.ToString(), " ",
                      is_row_major() ? "row-major" : format);
}

}  // namespace muster
