#ifndef WORKER_INPUT_IMAGE_PNG_ENCODER_H_
#define WORKER_INPUT_IMAGE_PNG_ENCODER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// Pixels of one image, the caller's.
struct ImagePixels {
  int64_t height = 0;
  int64_t width = 0;
  // 1 (grey) or 3 (RGB).
  int64_t channels = 0;
  // [H, W, C].
  absl::Span<const uint8_t> values;
};

// The bytes of a PNG file that holds exactly these pixels.
//   EncodePng({2, 2, 1, {0, 255, 255, 0}})  a chequered square
// Errors: InvalidArgument (no pixels, other channels, not H * W * C values);
// ResourceExhausted (memory).
absl::StatusOr<std::string> EncodePng(const ImagePixels& image);

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_PNG_ENCODER_H_
