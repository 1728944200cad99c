// PNG and JPEG images; a PNG also with the checksums of what it holds.
#include <zlib.h>

#include <string>

#include "tests/fuzz/fuzz.h"
#include "worker/input/image/image_decoder.h"
#include "worker/input/image/png_encoder.h"

namespace muster {
namespace {

constexpr int64_t kMostPixels = 1 << 14;
constexpr size_t kPngMagicBytes = 8;
// The length and the type before the bytes of a chunk, and the checksum.
constexpr size_t kPngFrameBytes = 12;

void TryDecoder(const ImageDecoder::Options& options, absl::string_view file) {
  auto decoder = ImageDecoder::Create(options);
  Want(decoder.ok(), "a decoder");
  const auto header = decoder->ReadHeader(AsBytes(file));
  const auto image = decoder->Decode(AsBytes(file));
  if (!image.ok()) return;
  Want(Wanted(header, "the header of an image").num_pixels() <= kMostPixels,
       "no more pixels than are allowed");
  Want(options.width > 0
           ? image->width == options.width && image->height == options.height
           : image->width == header->width() &&
                 image->height == header->height(),
       "the size that is wanted, or that the header says");
  Want(static_cast<int64_t>(image->pixels.size()) ==
           int64_t{image->width} * image->height * image->channels,
       "the pixels of the size");
  const std::string pixels(image->pixels.begin(), image->pixels.end());
  const auto png = EncodePng(
      {image->height, image->width, image->channels, AsBytes(pixels)});
  const auto again = decoder->Decode(AsBytes(Wanted(png, "the PNG of it")));
  Want(Wanted(again, "an image that was written").pixels == AsBytes(pixels),
       "the same pixels");
}

void TryImage(absl::string_view file) {
  TryDecoder({/*channels=*/1, 0, 0, kMostPixels}, file);
  TryDecoder({/*channels=*/3, 0, 0, kMostPixels}, file);
  TryDecoder({/*channels=*/3, 4, 4, kMostPixels}, file);
  TryDecoder({/*channels=*/1, 5, 3, kMostPixels, SCALED}, file);
}

uint32_t BigEndianAt(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = at; i < at + 4; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

// libFuzzer does not guess checksums.
std::string WithChecksums(absl::string_view file) {
  std::string png(file);
  size_t at = kPngMagicBytes;
  while (at + kPngFrameBytes <= png.size()) {
    const size_t length = BigEndianAt(png, at);
    if (length > png.size() - at - kPngFrameBytes) break;
    const auto* const typed = reinterpret_cast<const Bytef*>(&png[at + 4]);
    const uint64_t crc = crc32_z(0, typed, length + 4);
    for (int i = 0; i < 4; ++i) {
      png[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    }
    at += length + kPngFrameBytes;
  }
  return png;
}

}  // namespace

void TryInput(absl::string_view input) {
  TryImage(input);
  const std::string mended = WithChecksums(input);
  if (mended != input) TryImage(mended);
}

}  // namespace muster
