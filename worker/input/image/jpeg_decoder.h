#ifndef WORKER_INPUT_IMAGE_JPEG_DECODER_H_
#define WORKER_INPUT_IMAGE_JPEG_DECODER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/image/image_header.h"

namespace muster {

// The smallest of the whole size, a half, a quarter and an eighth at which the
// JPEG is seen with at least `min_width` x `min_height` pixels. The whole size
// if both are 0, or it is too small itself.
PixelSize ScaledJpegSize(const ImageHeader& header, int min_width,
                         int min_height);

// Decodes JPEGs by TurboJPEG. Not thread-safe.
class JpegDecoder {
 public:
  // Errors: ResourceExhausted.
  static absl::StatusOr<JpegDecoder> Create();

  // Errors: DataLoss (damaged, or of a kind that TurboJPEG does not read),
  // InvalidArgument (CMYK).
  absl::StatusOr<ImageHeader> ReadHeader(absl::Span<const uint8_t> jpeg);

  // Writes pixels of `channels` (1: the luma, or 3: RGB) to dst [H, W, C], in
  // the whole size, or one that is from ScaledJpegSize. Errors: DataLoss, for
  // what TurboJPEG only warns of, too: it fills what is missing with grey.
  absl::Status Decode(absl::Span<const uint8_t> jpeg, const PixelSize& size,
                      int channels, uint8_t* dst);

 private:
  struct Destroy {
    void operator()(void* handle) const;
  };

  explicit JpegDecoder(void* handle) : handle_(handle) {}

  absl::Status Damaged();

  // A tjhandle; it keeps TurboJPEG's tables from one image to the next.
  std::unique_ptr<void, Destroy> handle_;
};

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_JPEG_DECODER_H_
