#include "worker/input/map/row_spec.h"

#include "absl/strings/str_cat.h"

namespace muster {

std::string RowSpec::ToString() const {
  return absl::StrCat(DataTypeName(dtype), " ", shape.ToString());
}

absl::Status CheckRowSpec(const RowSpec& spec) {
  const bool has_dtype = spec.dtype == UINT8 || spec.dtype == FLOAT32;
  const bool has_rank = spec.shape.rank() == 1 || spec.is_image();
  if (has_dtype && has_rank && spec.shape.num_elements() > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("needs rows of uint8 or float32, [channels, height, width] "
                   "or [n], with one or more values; found ",
                   spec.ToString()));
}

absl::Status CheckImage(const RowSpec& spec) {
  if (spec.is_image()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "needs rows [channels, height, width], found ", spec.ToString()));
}

absl::Status CheckDtype(const RowSpec& spec, DataType wanted) {
  if (spec.dtype == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "needs rows of ", DataTypeName(wanted), ", found ", spec.ToString(),
      wanted == FLOAT32 ? "; put a cast before it" : ""));
}

}  // namespace muster
