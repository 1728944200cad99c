#ifndef WORKER_INPUT_IMAGE_EXIF_ORIENTATION_H_
#define WORKER_INPUT_IMAGE_EXIF_ORIENTATION_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// The orientation of an image that is seen as it is stored.
inline constexpr int kUpright = 1;

// True if an image of `orientation` is seen with its sides swapped.
inline bool IsTransposed(int orientation) { return orientation >= 5; }

// The orientation, 1 to 8, that EXIF data state: a TIFF header and its first
// directory, as PNG's eXIF chunk has them. kUpright if they state none, or are
// damaged: a camera's note does not decide whether pixels are good.
int ExifOrientation(absl::Span<const uint8_t> exif);

// The same of a JPEG's first EXIF segment.
int JpegOrientation(absl::Span<const uint8_t> jpeg);

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_EXIF_ORIENTATION_H_
