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

// Pixels of a file that is then scaled are kept as memory for the next up to
// this: a photograph of 22 million of them.
constexpr size_t kMostKeptBytes = 64 << 20;

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

size_t NumBytes(const PixelSize& size, int channels) {
  return static_cast<size_t>(size.width) * static_cast<size_t>(size.height) *
         static_cast<size_t>(channels);
}

void GrowTo(size_t num_bytes, std::vector<uint8_t>* bytes) {
  if (bytes->size() < num_bytes) bytes->resize(num_bytes);
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
  if (options.width < 0 || options.height < 0 ||
      (options.width == 0) != (options.height == 0) || options.max_pixels < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "decoding images: wanted a size, or 0 x 0, and a limit of 1 pixel or "
        "more; found ",
        options.width, " x ", options.height, " and ", options.max_pixels));
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
  const PixelSize size =
      options_.decode == SCALED
          ? ScaledJpegSize(header, options_.width, options_.height)
          : PixelSize{header.stored_width, header.stored_height};
  GrowTo(NumBytes(size, options_.channels), &stored_);
  RETURN_IF_ERROR(jpeg_.Decode(jpeg, size, options_.channels, stored_.data()));
  return Finish(size, header.orientation);
}

absl::StatusOr<DecodedImage> ImageDecoder::DecodePng(
    absl::Span<const uint8_t> png) {
  ASSIGN_OR_RETURN(PngImage image, PngImage::Open(png, options_.max_pixels));
  RETURN_IF_ERROR(image.Decode(options_.channels, stored_));
  const ImageHeader& header = image.header();
  return Finish({header.stored_width, header.stored_height},
                header.orientation);
}

DecodedImage ImageDecoder::Finish(const PixelSize& size, int orientation) {
  PixelSize wanted = {options_.width, options_.height};
  if (IsTransposed(orientation)) std::swap(wanted.width, wanted.height);
  if (options_.width == 0 || wanted == size) {
    return MakeUpright(stored_, size, orientation);
  }
  // Turned after it is scaled: there are fewer pixels to turn.
  GrowTo(NumBytes(wanted, options_.channels), &scaled_);
  scaling_.Scale(stored_.data(), size, wanted, options_.channels,
                 scaled_.data());
  if (stored_.size() > kMostKeptBytes) std::vector<uint8_t>().swap(stored_);
  return MakeUpright(scaled_, wanted, orientation);
}

DecodedImage ImageDecoder::MakeUpright(const std::vector<uint8_t>& pixels,
                                       const PixelSize& size, int orientation) {
  const int channels = options_.channels;
  const size_t num_bytes = NumBytes(size, channels);
  const bool swapped = IsTransposed(orientation);
  DecodedImage image{swapped ? size.height : size.width,
                     swapped ? size.width : size.height, channels,
                     absl::MakeConstSpan(pixels.data(), num_bytes)};
  if (orientation == kUpright) return image;
  GrowTo(num_bytes, &upright_);
  WriteUpright({pixels.data(), size.width, size.height, channels}, orientation,
               upright_.data());
  image.pixels = absl::MakeConstSpan(upright_.data(), num_bytes);
  return image;
}

}  // namespace muster
