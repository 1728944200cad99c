#include "worker/input/map/image_size.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {

AttrDef ImageSizeAttr(absl::string_view help) {
  return IntsAttr("size", help).AtLeast(1).AtMost(kMaxImageSide);
}

absl::StatusOr<ImageSize> ReadImageSize(absl::Span<const int64_t> size) {
  if (size.empty() || size.size() > 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attribute 'size' needs one integer or [rows, columns], found ",
        size.size(), " integers"));
  }
  return ImageSize{size.front(), size.back()};
}

absl::StatusOr<RowSpec> WithImageSize(const RowSpec& input,
                                      const ImageSize& size) {
  ASSIGN_OR_RETURN(const Shape shape, Shape::Create({input.shape.dim(0),
                                                     size.rows, size.columns}));
  return RowSpec{input.dtype, shape};
}

}  // namespace muster
