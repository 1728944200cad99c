#ifndef WORKER_INPUT_IMAGE_IMAGE_HEADER_H_
#define WORKER_INPUT_IMAGE_IMAGE_HEADER_H_

#include <cstdint>

#include "worker/input/image/exif_orientation.h"

namespace muster {

// Width and height of pixels.
struct PixelSize {
  int width = 0;
  int height = 0;

  friend bool operator==(const PixelSize& a, const PixelSize& b) {
    return a.width == b.width && a.height == b.height;
  }
};

// The contents of an image's header.
struct ImageHeader {
  // Pixels as they are stored: before the orientation.
  int stored_width = 0;
  int stored_height = 0;
  // 1 (grey) or 3 (colour, also from a palette); alpha is not counted.
  int channels = 0;
  // EXIF's, 1 to 8.
  int orientation = kUpright;

  // Pixels as the image is seen.
  int width() const {
    return IsTransposed(orientation) ? stored_height : stored_width;
  }
  int height() const {
    return IsTransposed(orientation) ? stored_width : stored_height;
  }
  int64_t num_pixels() const {
    return int64_t{stored_width} * int64_t{stored_height};
  }
};

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_IMAGE_HEADER_H_
