#ifndef WORKER_INPUT_IMAGE_IMAGE_DECODER_H_
#define WORKER_INPUT_IMAGE_IMAGE_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/training.pb.h"
#include "worker/input/image/image_header.h"
#include "worker/input/image/jpeg_decoder.h"
#include "worker/input/image/pixel_limit.h"
#include "worker/input/image/pixel_scaling.h"

namespace muster {

// An image's pixels, uint8, as it is seen; they are the decoder's.
struct DecodedImage {
  int width = 0;
  int height = 0;
  int channels = 0;
  // [H, W, C]
  absl::Span<const uint8_t> pixels;
};

// Do the bytes begin as a JPEG or PNG file does?
bool IsImageFile(absl::Span<const uint8_t> file);

// Makes pixels of the bytes of JPEG and PNG files, whatever their names say.
// The orientation that EXIF states is applied. Not thread-safe: one a thread.
//   ASSIGN_OR_RETURN(ImageDecoder decoder, ImageDecoder::Create({}));
//   ASSIGN_OR_RETURN(const DecodedImage image, decoder.Decode(bytes));
//   Show(image.pixels, image.width, image.height);
// Its buffers grow to the largest image that it met and are used again, unless
// that was far above a photograph; what libspng and TurboJPEG take for an image
// themselves, they take anew.
// Errors do not name the file; the caller does.
class ImageDecoder {
 public:
  struct Options {
    // 1 (grey) or 3 (RGB), whatever the file has.
    int channels = 3;
    // The size of all images as they are seen, to which they are scaled; 0 and
    // 0: that of each file.
    int width = 0;
    int height = 0;
    int64_t max_pixels = kMaxPixels;
    // SCALED: a JPEG is decoded at the smallest scale (1, 1/2, 1/4, 1/8) that
    // has at least the size, and scaled from there.
    ImageDecode decode = FULL;
  };

  // Errors: InvalidArgument (an option), ResourceExhausted.
  static absl::StatusOr<ImageDecoder> Create(const Options& options);

  // Reads a header alone, of the bytes of the whole file. Errors: as Decode's.
  absl::StatusOr<ImageHeader> ReadHeader(absl::Span<const uint8_t> file);

  // The pixels, until the next call.
  // Errors: DataLoss (damaged, cut short); InvalidArgument (neither JPEG nor
  // PNG, CMYK, more than `max_pixels`), before memory is taken.
  absl::StatusOr<DecodedImage> Decode(absl::Span<const uint8_t> file);

 private:
  ImageDecoder(const Options& options, JpegDecoder jpeg)
      : options_(options), jpeg_(std::move(jpeg)) {}

  absl::StatusOr<ImageHeader> ReadJpegHeader(absl::Span<const uint8_t> jpeg);
  absl::StatusOr<DecodedImage> DecodeJpeg(absl::Span<const uint8_t> jpeg);
  absl::StatusOr<DecodedImage> DecodePng(absl::Span<const uint8_t> png);

  // The pixels of `size` in `stored_`, in the wanted size and upright.
  DecodedImage Finish(const PixelSize& size, int orientation);
  DecodedImage MakeUpright(const std::vector<uint8_t>& pixels,
                           const PixelSize& size, int orientation);

  // Constant but for moves.
  Options options_;
  JpegDecoder jpeg_;
  PixelScaling scaling_;
  // Buffers: pixels as they are stored, of the file's size and of the wanted
  // one, and upright.
  std::vector<uint8_t> stored_;
  std::vector<uint8_t> scaled_;
  std::vector<uint8_t> upright_;
};

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_IMAGE_DECODER_H_
