#include "worker/input/image/image_decoder.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "worker/input/image/exif_orientation.h"
#include "worker/input/image/png_image.h"

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

// Pixels as a decoder writes them: uint8, HWC, before the orientation.
struct StoredPixels {
  const uint8_t* pixels = nullptr;
  int width = 0;
  int height = 0;
  int channels = 0;
};

// A walk over stored pixels in the order in which they are seen; in pixels.
struct Walk {
  ptrdiff_t begin = 0;
  ptrdiff_t right = 0;
  ptrdiff_t down = 0;
};

Walk WalkOf(int orientation, ptrdiff_t width, ptrdiff_t height) {
  const ptrdiff_t last_column = width - 1;
  const ptrdiff_t last_row = (height - 1) * width;
  switch (orientation) {
    case 2:  // Mirrored.
      return {last_column, -1, width};
    case 3:  // Turned by 180 degrees.
      return {last_row + last_column, -1, -width};
    case 4:  // Upside down and mirrored.
      return {last_row, 1, -width};
    case 5:  // Transposed.
      return {0, width, 1};
    case 6:  // Seen after a turn by 90 degrees clockwise.
      return {last_row, -width, 1};
    case 7:  // Transposed over the other diagonal.
      return {last_row + last_column, -width, -1};
    case 8:  // Seen after a turn by 90 degrees counterclockwise.
      return {last_column, width, -1};
    default:
      return {0, 1, width};
  }
}

// kChannels as a constant: the inner loop is unrolled.
template <int kChannels>
void CopyPixels(const uint8_t* src, const Walk& walk, int width, int height,
                uint8_t* dst) {
  const ptrdiff_t right = walk.right * kChannels;
  for (int y = 0; y < height; ++y) {
    const uint8_t* from = src + (walk.begin + y * walk.down) * kChannels;
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < kChannels; ++c) *dst++ = from[c];
      from += right;
    }
  }
}

// Writes `src`, as it is seen under EXIF's `orientation`.
//   dst [H, W, C]; W and H are swapped if IsTransposed.
// REQUIRES: orientation in 1 to 8; dst has as many bytes as src, and is none
// of them.
void WriteUpright(const StoredPixels& src, int orientation, uint8_t* dst) {
  const bool swapped = IsTransposed(orientation);
  const int width = swapped ? src.height : src.width;
  const int height = swapped ? src.width : src.height;
  const Walk walk = WalkOf(orientation, src.width, src.height);
  if (src.channels == 1) {
    CopyPixels<1>(src.pixels, walk, width, height, dst);
  } else {
    CopyPixels<3>(src.pixels, walk, width, height, dst);
  }
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
