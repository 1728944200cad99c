#include "worker/input/image/upright_pixels.h"

#include <cstddef>

#include "worker/input/image/exif_orientation.h"

namespace muster {
namespace {

// A walk over stored pixels in the order in which they are seen; in pixels.
struct Walk {
  ptrdiff_t begin = 0;
  ptrdiff_t right = 0;
  ptrdiff_t down = 0;
};

Walk WalkOf(int orientation, ptrdiff_t width, ptrdiff_t height) {
  const ptrdiff_t last_column = width - 1;
  const ptrdiff_t last_row = (height - 1) * width;
  switch (orientation) {
    case 2:  // Mirrored.
      return {last_column, -1, width};
    case 3:  // Turned by 180 degrees.
      return {last_row + last_column, -1, -width};
    case 4:  // Upside down and mirrored.
      return {last_row, 1, -width};
    case 5:  // Transposed.
      return {0, width, 1};
    case 6:  // Seen after a turn by 90 degrees clockwise.
      return {last_row, -width, 1};
    case 7:  // Transposed over the other diagonal.
      return {last_row + last_column, -width, -1};
    case 8:  // Seen after a turn by 90 degrees counterclockwise.
      return {last_column, width, -1};
    default:
      return {0, 1, width};
  }
}

// kChannels as a constant: the inner loop is unrolled.
template <int kChannels>
void CopyPixels(const uint8_t* src, const Walk& walk, int width, int height,
                uint8_t* dst) {
  const ptrdiff_t right = walk.right * kChannels;
  for (int y = 0; y < height; ++y) {
    const uint8_t* from = src + (walk.begin + y * walk.down) * kChannels;
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < kChannels; ++c) *dst++ = from[c];
      from += right;
    }
  }
}

}  // namespace

void WriteUpright(const StoredPixels& src, int orientation, uint8_t* dst) {
  const bool swapped = IsTransposed(orientation);
  const int width = swapped ? src.height : src.width;
  const int height = swapped ? src.width : src.height;
  const Walk walk = WalkOf(orientation, src.width, src.height);
  if (src.channels == 1) {
    CopyPixels<1>(src.pixels, walk, width, height, dst);
  } else {
    CopyPixels<3>(src.pixels, walk, width, height, dst);
  }
}

}  // namespace muster
