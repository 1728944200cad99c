#ifndef WORKER_INPUT_MAP_IMAGE_SIZE_H_
#define WORKER_INPUT_MAP_IMAGE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "worker/input/map/row_spec.h"

namespace muster {

// The longest side that an attribute may ask for: longer ones would be
// mistakes, and sums of them must not overflow.
inline constexpr int64_t kMaxImageSide = int64_t{1} << 20;

struct ImageSize {
  int64_t rows = 0;
  int64_t columns = 0;

  friend bool operator!=(const ImageSize& a, const ImageSize& b) {
    return a.rows != b.rows || a.columns != b.columns;
  }
};

// A required attribute "size".
AttrDef ImageSizeAttr(absl::string_view help);

// The numbers of `size`: one side of a square, or rows and columns. Errors:
// InvalidArgument for another count.
absl::StatusOr<ImageSize> ReadImageSize(absl::Span<const int64_t> size);

// `input` with images of another size. Errors: InvalidArgument if its values
// cannot be counted.
absl::StatusOr<RowSpec> WithImageSize(const RowSpec& input,
                                      const ImageSize& size);

}  // namespace muster

#endif  // WORKER_INPUT_MAP_IMAGE_SIZE_H_
