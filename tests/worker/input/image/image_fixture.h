// Makes JPEG and PNG files in memory, good and bad.
#ifndef TESTS_WORKER_INPUT_IMAGE_IMAGE_FIXTURE_H_
#define TESTS_WORKER_INPUT_IMAGE_IMAGE_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

using Bytes = std::vector<uint8_t>;

// Pixels [H, W, C] in which all neighbours differ a little: JPEG keeps them.
Bytes SmoothPixels(int width, int height, int channels);

// RGB pixels that deflate cannot make much smaller.
Bytes NoisyPixels(int width, int height);

// A JPEG of the best quality; `channels` 1 (grey), 3 (RGB) or 4 (CMYK).
Bytes EncodeJpeg(const Bytes& pixels, int width, int height, int channels);

// The same with several scans.
Bytes EncodeProgressiveJpeg(const Bytes& pixels, int width, int height);

// EXIF data whose first directory states `orientation`.
Bytes ExifData(uint16_t orientation, bool big_endian);

// `jpeg` with `exif` as its first segment.
Bytes WithExif(const Bytes& jpeg, const Bytes& exif);

struct PngForm {
  int color_type = 0;
  int bit_depth = 8;
  bool interlaced = false;
  // R, G, B of each entry.
  Bytes palette = {};
  Bytes exif = {};
};

// A PNG of `samples`: those of the form, 16 bits in this machine's order, rows
// packed and padded to bytes.
Bytes EncodePng(const Bytes& samples, int width, int height,
                const PngForm& form);

// `png`'s header of other sides, its checksum mended.
Bytes WithSides(const Bytes& png, uint32_t width, uint32_t height);

// `png` with a chunk after its header.
Bytes WithChunk(const Bytes& png, absl::string_view type, const Bytes& data);

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_IMAGE_IMAGE_FIXTURE_H_
