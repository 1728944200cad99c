#ifndef WORKER_INPUT_IMAGE_PNG_IMAGE_H_
#define WORKER_INPUT_IMAGE_PNG_IMAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/image/image_header.h"

struct spng_ctx;

namespace muster {

// A PNG in memory whose header is read; decoded once, by libspng.
class PngImage {
 public:
  // Reads the chunks before the pixels. `png` stays the caller's, and is there
  // as long as this object.
  // Errors: DataLoss (damaged), InvalidArgument (more than `max_pixels`; text
  // or profiles of more than a few MiB), ResourceExhausted (memory).
  static absl::StatusOr<PngImage> Open(absl::Span<const uint8_t> png,
                                       int64_t max_pixels);

  const ImageHeader& header() const { return header_; }

  // Writes pixels of `channels` (1 or 3) to the beginning of `pixels`, [H, W,
  // C], which grows if it is too small. 16 bits lose their low 8; 1, 2 and 4
  // bits are spread over 0 to 255; alpha, transparent colours and gamma do not
  // count; grey is three equal channels, and colour becomes grey by Luma.
  // Errors: DataLoss (damaged, cut short before its end chunk).
  absl::Status Decode(int channels, std::vector<uint8_t>& pixels);

 private:
  struct Free {
    void operator()(spng_ctx* context) const;
  };

  explicit PngImage(spng_ctx* context) : context_(context) {}

  absl::Status SetLimits(int64_t max_pixels);
  absl::Status ReadHeader(int64_t max_pixels);

  std::unique_ptr<spng_ctx, Free> context_;
  ImageHeader header_;
  int color_type_ = 0;
  int bit_depth_ = 0;
};

// The grey of a colour: (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded
// down; that is, ITU-R 601's luma, rounded, as libjpeg has it. Luma(g, g, g)
// is g.
inline uint8_t Luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>(
      (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_PNG_IMAGE_H_
