#include "worker/input/image/image_decoder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/image/png_image.h"
#include "worker/input/image/upright_pixels.h"

namespace muster {
namespace {

struct Magic {
  absl::string_view bytes;
  absl::string_view format;
};

constexpr absl::string_view kJpegMagic = "\xff\xd8\xff";
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

// Formats that people have, and that are not read.
constexpr Magic kOtherFormats[] = {
    {"GIF8", "a GIF"}, {"BM", "a BMP"},  {"RIFF", "a WebP"},
    {"II*", "a TIFF"}, {"MM", "a TIFF"}, {"\x1f\x8b", "a gzip file"},
};

bool HasMagic(absl::Span<const uint8_t> file, absl::string_view magic) {
  return absl::StartsWith(
      absl::string_view(reinterpret_cast<const char*>(file.data()),
                        file.size()),
      magic);
}

absl::string_view FormatOf(absl::Span<const uint8_t> file) {
  if (file.empty()) return "an empty file";
  for (const Magic& magic : kOtherFormats) {
    if (HasMagic(file, magic.bytes)) return magic.format;
  }
  return "bytes of neither";
}

absl::Status NoImage(absl::Span<const uint8_t> file) {
  return absl::InvalidArgumentError(
      absl::StrCat("wanted a JPEG or a PNG, found ", FormatOf(file),
                   "; convert it, or leave it out"));
}

}  // namespace

bool IsImageFile(absl::Span<const uint8_t> file) {
  return HasMagic(file, kJpegMagic) || HasMagic(file, kPngMagic);
}

absl::StatusOr<ImageDecoder> ImageDecoder::Create(const Options& options) {
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("decoding images: wanted 1 (grey) or 3 (RGB) channels, "
                     "found ",
                     options.channels));
  }
  if (options.min_width < 0 || options.min_height < 0 ||
      options.max_pixels < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "decoding images: wanted a least size of 0 x 0 or more, and limit of 1 "
        "pixel or more; found ",
        options.min_width, " x ", options.min_height, " and ",
        options.max_pixels));
  }
  ASSIGN_OR_RETURN(JpegDecoder jpeg, JpegDecoder::Create());
  return ImageDecoder(options, std::move(jpeg));
}

absl::StatusOr<ImageHeader> ImageDecoder::ReadHeader(
    absl::Span<const uint8_t> file) {
  if (HasMagic(file, kJpegMagic)) return ReadJpegHeader(file);
  if (!HasMagic(file, kPngMagic)) return NoImage(file);
  ASSIGN_OR_RETURN(const PngImage png,
                   PngImage::Open(file, options_.max_pixels));
  return png.header();
}

absl::StatusOr<DecodedImage> ImageDecoder::Decode(
    absl::Span<const uint8_t> file) {
  if (HasMagic(file, kJpegMagic)) return DecodeJpeg(file);
  if (HasMagic(file, kPngMagic)) return DecodePng(file);
  return NoImage(file);
}

absl::StatusOr<ImageHeader> ImageDecoder::ReadJpegHeader(
    absl::Span<const uint8_t> jpeg) {
  ASSIGN_OR_RETURN(const ImageHeader header, jpeg_.ReadHeader(jpeg));
  RETURN_IF_ERROR(CheckPixels(header, options_.max_pixels));
  return header;
}

absl::StatusOr<DecodedImage> ImageDecoder::DecodeJpeg(
    absl::Span<const uint8_t> jpeg) {
  ASSIGN_OR_RETURN(const ImageHeader header, ReadJpegHeader(jpeg));
  const JpegSize size =
      ScaledJpegSize(header, options_.min_width, options_.min_height);
  const size_t num_bytes = static_cast<size_t>(size.width) *
                           static_cast<size_t>(size.height) *
                           static_cast<size_t>(options_.channels);
  if (stored_.size() < num_bytes) stored_.resize(num_bytes);
  RETURN_IF_ERROR(jpeg_.Decode(jpeg, size, options_.channels, stored_.data()));
  return MakeUpright(size.width, size.height, header.orientation);
}

absl::StatusOr<DecodedImage> ImageDecoder::DecodePng(
    absl::Span<const uint8_t> png) {
  ASSIGN_OR_RETURN(PngImage image, PngImage::Open(png, options_.max_pixels));
  RETURN_IF_ERROR(image.Decode(options_.channels, stored_));
  const ImageHeader& header = image.header();
  return MakeUpright(header.stored_width, header.stored_height,
                     header.orientation);
}

DecodedImage ImageDecoder::MakeUpright(int width, int height, int orientation) {
  const int channels = options_.channels;
  const size_t num_bytes = static_cast<size_t>(width) *
                           static_cast<size_t>(height) *
                           static_cast<size_t>(channels);
  const bool swapped = IsTransposed(orientation);
  DecodedImage image{swapped ? height : width, swapped ? width : height,
                     channels, absl::MakeConstSpan(stored_.data(), num_bytes)};
  if (orientation == kUpright) return image;
  if (upright_.size() < num_bytes) upright_.resize(num_bytes);
  WriteUpright({stored_.data(), width, height, channels}, orientation,
               upright_.data());
  image.pixels = absl::MakeConstSpan(upright_.data(), num_bytes);
  return image;
}

}  // namespace muster
