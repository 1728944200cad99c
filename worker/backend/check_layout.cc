#include "worker/backend/check_layout.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

absl::Status CheckCount(absl::string_view operation, size_t wanted,
                        size_t found) {
  if (wanted == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      operation, ": ", wanted, " sources, but ", found, " layouts"));
}

}  // namespace

absl::Status CheckLayout(absl::string_view operation,
                         const MemoryLayout& layout, DataType dtype,
                         const Shape& shape) {
  if (layout.dtype == dtype && layout.shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(operation, ": wanted a layout of ", DataTypeName(dtype), " ",
                   shape.ToString(), ", found ", layout.ToString()));
}

absl::Status CheckLayouts(const AddDesc& desc, DataType dtype,
                          absl::Span<const MemoryLayout> srcs) {
  RETURN_IF_ERROR(
      CheckCount("add", static_cast<size_t>(desc.num_srcs), srcs.size()));
  for (const MemoryLayout& src : srcs) {
    RETURN_IF_ERROR(CheckLayout("add", src, dtype, desc.shape));
  }
  return absl::OkStatus();
}

absl::Status CheckLayouts(const ConcatDesc& desc, DataType dtype,
                          absl::Span<const MemoryLayout> srcs) {
  RETURN_IF_ERROR(CheckCount("concat", desc.srcs.size(), srcs.size()));
  for (size_t i = 0; i < srcs.size(); ++i) {
    RETURN_IF_ERROR(CheckLayout("concat", srcs[i], dtype, desc.srcs[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckReorder(const MemoryLayout& from, const MemoryLayout& to,
                          DataType dtype) {
  RETURN_IF_ERROR(CheckLayout("reorder", from, dtype, from.shape));
  return CheckLayout("reorder", to, dtype, from.shape);
}

}  // namespace muster
