#include "worker/input/image/png_image.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "spng.h"
#include "worker/input/image/exif_orientation.h"
#include "worker/input/image/pixel_limit.h"

namespace muster {
namespace {

// The inflated text or profile of one chunk, and all that is kept of chunks.
// Colour profiles of printers have about 2 MiB.
constexpr size_t kMaxChunkBytes = 4 << 20;
constexpr size_t kMaxChunksBytes = 16 << 20;
// The largest side that the format allows.
constexpr int64_t kMaxPngSide = INT32_MAX;

absl::Status Damaged(int error) {
  return absl::DataLossError(
      absl::StrCat("a PNG that is cut short or damaged (", spng_strerror(error),
                   "); copy or write it anew, or leave it out"));
}

absl::Status ChunkError(int error) {
  if (error == SPNG_ECHUNK_LIMITS) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a PNG with text or profiles that are too large or too many; wanted at "
        "most ",
        kMaxChunkBytes, " bytes in one and ", kMaxChunksBytes,
        " in all; write it without them, or leave it out"));
  }
  return Damaged(error);
}

absl::Status HeaderError(int error, int64_t max_pixels) {
  if (error == SPNG_EUSER_WIDTH || error == SPNG_EUSER_HEIGHT) {
    return TooManyPixels("a side of more than that", max_pixels);
  }
  return Damaged(error);
}

int OrientationOf(spng_ctx* context) {
  spng_exif exif = {};
  if (spng_get_exif(context, &exif) != 0) return kUpright;
  return ExifOrientation(absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(exif.data), exif.length));
}

// In place: the byte written is never after the bytes read.
void MakeGrey(size_t num_pixels, uint8_t* pixels) {
  for (size_t i = 0; i < num_pixels; ++i) {
    const uint8_t* const pixel = pixels + 3 * i;
    pixels[i] = Luma(pixel[0], pixel[1], pixel[2]);
  }
}

}  // namespace

void PngImage::Free::operator()(spng_ctx* context) const {
  spng_ctx_free(context);
}

absl::StatusOr<PngImage> PngImage::Open(absl::Span<const uint8_t> png,
                                        int64_t max_pixels) {
  PngImage image(spng_ctx_new(/*flags=*/0));
  if (image.context_ == nullptr) {
    return absl::ResourceExhaustedError("no memory to read a PNG");
  }
  RETURN_IF_ERROR(image.SetLimits(max_pixels));
  const int error =
      spng_set_png_buffer(image.context_.get(), png.data(), png.size());
  if (error != 0) return Damaged(error);
  RETURN_IF_ERROR(image.ReadHeader(max_pixels));
  return image;
}

absl::Status PngImage::SetLimits(int64_t max_pixels) {
  const auto max_side =
      static_cast<uint32_t>(std::min(max_pixels, kMaxPngSide));
  if (spng_set_image_limits(context_.get(), max_side, max_side) != 0 ||
      spng_set_chunk_limits(context_.get(), kMaxChunkBytes, kMaxChunksBytes) !=
          0) {
    return absl::InternalError("libspng refuses the limits of a PNG");
  }
  return absl::OkStatus();
}

absl::Status PngImage::ReadHeader(int64_t max_pixels) {
  spng_ihdr ihdr = {};
  int error = spng_get_ihdr(context_.get(), &ihdr);
  if (error != 0) return HeaderError(error, max_pixels);
  color_type_ = ihdr.color_type;
  bit_depth_ = ihdr.bit_depth;
  header_.stored_width = static_cast<int>(ihdr.width);
  header_.stored_height = static_cast<int>(ihdr.height);
  header_.channels = color_type_ == SPNG_COLOR_TYPE_GRAYSCALE ||
                             color_type_ == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA
                         ? 1
                         : 3;
  RETURN_IF_ERROR(CheckPixels(header_, max_pixels));
  error = spng_decode_chunks(context_.get());
  if (error != 0) return ChunkError(error);
  header_.orientation = OrientationOf(context_.get());
  return absl::OkStatus();
}

absl::Status PngImage::Decode(int channels, std::vector<uint8_t>& pixels) {
  // libspng makes one channel of no other form.
  const bool is_grey = channels == 1 &&
                       color_type_ == SPNG_COLOR_TYPE_GRAYSCALE &&
                       bit_depth_ <= 8;
  const auto num_pixels = static_cast<size_t>(header_.num_pixels());
  const size_t num_bytes = num_pixels * (is_grey ? 1 : 3);
  if (pixels.size() < num_bytes) pixels.resize(num_bytes);
  int error = spng_decode_image(context_.get(), pixels.data(), num_bytes,
                                is_grey ? SPNG_FMT_G8 : SPNG_FMT_RGB8,
                                /*flags=*/0);
  // The end chunk shows that the file is whole.
  if (error == 0) error = spng_decode_chunks(context_.get());
  if (error != 0) return ChunkError(error);
  if (channels == 1 && !is_grey) MakeGrey(num_pixels, pixels.data());
  return absl::OkStatus();
}

}  // namespace muster
