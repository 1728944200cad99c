#include "worker/backend/memory_layout.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/dtype.h"

namespace muster {

MemoryLayout MemoryLayout::RowMajor(DataType dtype, const Shape& shape) {
  const int64_t size = static_cast<int64_t>(SizeOf(dtype));
  return {dtype, shape, "", shape.num_elements() * size};
}

std::optional<MemoryLayout> StackRowMajor(const MemoryLayout& layout,
                                          int64_t count) {
  if (!layout.is_row_major()) return std::nullopt;
  std::vector<int64_t> dims(layout.shape.dims().begin(),
                            layout.shape.dims().end());
  dims[0] *= count;
  const absl::StatusOr<Shape> shape = Shape::Create(dims);
  if (!shape.ok()) return std::nullopt;
  return MemoryLayout::RowMajor(layout.dtype, *shape);
}

std::string MemoryLayout::ToString() const {
  return absl::StrCat(DataTypeName(dtype), " ", shape.ToString(), " ",
                      is_row_major() ? "row-major" : format);
}

}  // namespace muster
