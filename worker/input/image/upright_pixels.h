#ifndef WORKER_INPUT_IMAGE_UPRIGHT_PIXELS_H_
#define WORKER_INPUT_IMAGE_UPRIGHT_PIXELS_H_

#include <cstdint>

namespace muster {

// Pixels as a decoder writes them: uint8, HWC, before the orientation.
struct StoredPixels {
  const uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
};

// Writes `src`, as it is seen under EXIF's `orientation`.
//   dst [H, W, C]; W and H are swapped if IsTransposed.
// REQUIRES: orientation in 1 to 8; dst has as many bytes as src, and is none
// of them.
void WriteUpright(const StoredPixels& src, int orientation, uint8_t* dst);

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_UPRIGHT_PIXELS_H_
