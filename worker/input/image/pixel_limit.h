#ifndef WORKER_INPUT_IMAGE_PIXEL_LIMIT_H_
#define WORKER_INPUT_IMAGE_PIXEL_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "worker/input/image/image_header.h"

namespace muster {

// An image of 8192 x 8192: 192 MiB of RGB, and twice that besides while a
// progressive JPEG is decoded.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// The longest side that a JPEG can have. A line of an image is held as floats
// while it is scaled.
inline constexpr int64_t kMaxSide = 65535;

// The error InvalidArgument of an image that has `found`.
inline absl::Status TooManyPixels(absl::string_view found, int64_t max_pixels) {
  return absl::InvalidArgumentError(
      absl::StrCat("wanted at most ", max_pixels,
                   " pixels and sides of at most ", kMaxSide, ", found ", found,
                   " in the image's header; make it smaller, or leave it out"));
}

// Asked before memory is taken for an image. Errors: TooManyPixels.
inline absl::Status CheckPixels(const ImageHeader& header, int64_t max_pixels) {
  if (header.num_pixels() <= max_pixels && header.stored_width <= kMaxSide &&
      header.stored_height <= kMaxSide) {
    return absl::OkStatus();
  }
  return TooManyPixels(
      absl::StrCat(header.stored_width, " x ", header.stored_height),
      max_pixels);
}

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_PIXEL_LIMIT_H_
