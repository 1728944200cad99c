#include "tests/worker/input/image/image_fixture.h"

#include <zlib.h>

#include <cstdlib>
#include <memory>

#include "gtest/gtest.h"
#include "spng.h"
#include "turbojpeg.h"

namespace muster {
namespace {

constexpr int kBestQuality = 100;
// The signature, and the length and type of the header's chunk.
constexpr size_t kPngSides = 16;
constexpr size_t kPngHeaderEnd = 33;

Bytes Encode(const Bytes& pixels, int width, int height, int channels,
             int flags) {
  const tjhandle handle = tjInitCompress();
  const int format =
      channels == 1 ? TJPF_GRAY : (channels == 3 ? TJPF_RGB : TJPF_CMYK);
  unsigned char* jpeg = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, format, &jpeg,
                        &size, channels == 1 ? TJSAMP_GRAY : TJSAMP_444,
                        kBestQuality, flags | TJFLAG_ACCURATEDCT),
            0)
      << tjGetErrorStr2(handle);
  Bytes bytes(jpeg, jpeg + size);
  tjFree(jpeg);
  tjDestroy(handle);
  return bytes;
}

void AppendBigEndian(uint32_t number, Bytes& bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<uint8_t>(number >> shift));
  }
}

Bytes PngChunk(absl::string_view type, const Bytes& data) {
  Bytes chunk;
  AppendBigEndian(static_cast<uint32_t>(data.size()), chunk);
  chunk.insert(chunk.end(), type.begin(), type.end());
  chunk.insert(chunk.end(), data.begin(), data.end());
  AppendBigEndian(
      static_cast<uint32_t>(
          crc32(0, chunk.data() + 4, static_cast<uInt>(chunk.size() - 4))),
      chunk);
  return chunk;
}

void SetPalette(spng_ctx* context, const Bytes& palette) {
  if (palette.empty()) return;
  spng_plte plte = {};
  plte.n_entries = static_cast<uint32_t>(palette.size() / 3);
  for (size_t i = 0; i < plte.n_entries; ++i) {
    plte.entries[i] = {palette[3 * i], palette[3 * i + 1], palette[3 * i + 2],
                       255};
  }
  EXPECT_EQ(spng_set_plte(context, &plte), 0);
}

}  // namespace

Bytes SmoothPixels(int width, int height, int channels) {
  Bytes pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(20 + x * 100 / width +
                                              y * 60 / height + c * 30));
      }
    }
  }
  return pixels;
}

Bytes NoisyPixels(int width, int height) {
  Bytes pixels = SmoothPixels(width, height, 3);
  uint32_t noise = 1;
  for (uint8_t& pixel : pixels) {
    noise = noise * 1664525 + 1013904223;  // Numerical Recipes' generator.
    pixel ^= static_cast<uint8_t>(noise >> 24);
  }
  return pixels;
}

Bytes EncodeJpeg(const Bytes& pixels, int width, int height, int channels) {
  return Encode(pixels, width, height, channels, 0);
}

Bytes EncodeProgressiveJpeg(const Bytes& pixels, int width, int height) {
  return Encode(pixels, width, height, 3, TJFLAG_PROGRESSIVE);
}

Bytes ExifData(uint16_t orientation, bool big_endian) {
  const auto value = static_cast<uint8_t>(orientation);
  // Two entries: the width of the image, and the orientation.
  if (big_endian) {
    return {'M', 'M', 0, '*', 0, 0,     0, 8, 0, 2, 1,    0, 0,
            3,   0,   0, 0,   1, 0,     9, 0, 0, 1, 0x12, 0, 3,
            0,   0,   0, 1,   0, value, 0, 0, 0, 0, 0,    0};
  }
  return {'I', 'I', '*', 0,    8, 0, 0, 0, 2, 0, 0, 1,     3, 0, 1, 0, 0, 0, 9,
          0,   0,   0,   0x12, 1, 3, 0, 1, 0, 0, 0, value, 0, 0, 0, 0, 0, 0, 0};
}

Bytes WithExif(const Bytes& jpeg, const Bytes& exif) {
  const size_t length = 2 + 6 + exif.size();
  Bytes bytes = {0xff,
                 0xd8,
                 0xff,
                 0xe1,
                 static_cast<uint8_t>(length >> 8),
                 static_cast<uint8_t>(length),
                 'E',
                 'x',
                 'i',
                 'f',
                 0,
                 0};
  bytes.insert(bytes.end(), exif.begin(), exif.end());
  bytes.insert(bytes.end(), jpeg.begin() + 2, jpeg.end());
  return bytes;
}

Bytes EncodePng(const Bytes& samples, int width, int height,
                const PngForm& form) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(
      spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr ihdr = {};
  ihdr.width = static_cast<uint32_t>(width);
  ihdr.height = static_cast<uint32_t>(height);
  ihdr.bit_depth = static_cast<uint8_t>(form.bit_depth);
  ihdr.color_type = static_cast<uint8_t>(form.color_type);
  ihdr.interlace_method =
      form.interlaced ? SPNG_INTERLACE_ADAM7 : SPNG_INTERLACE_NONE;
  EXPECT_EQ(spng_set_ihdr(context.get(), &ihdr), 0);
  SetPalette(context.get(), form.palette);
  Bytes exif_data = form.exif;
  spng_exif exif = {exif_data.size(),
                    reinterpret_cast<char*>(exif_data.data())};
  if (!exif_data.empty()) {
    EXPECT_EQ(spng_set_exif(context.get(), &exif), 0);
  }
  const int error =
      spng_encode_image(context.get(), samples.data(), samples.size(),
                        SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  EXPECT_EQ(error, 0) << spng_strerror(error);
  size_t size = 0;
  int buffer_error = 0;
  void* const png = spng_get_png_buffer(context.get(), &size, &buffer_error);
  EXPECT_EQ(buffer_error, 0);
  const Bytes bytes(static_cast<uint8_t*>(png),
                    static_cast<uint8_t*>(png) + size);
  std::free(png);
  return bytes;
}

Bytes WithSides(const Bytes& png, uint32_t width, uint32_t height) {
  Bytes header;
  AppendBigEndian(width, header);
  AppendBigEndian(height, header);
  header.insert(header.end(), png.begin() + kPngSides + 8,
                png.begin() + kPngHeaderEnd - 4);
  const Bytes chunk = PngChunk("IHDR", header);
  Bytes bytes(png.begin(), png.begin() + 8);
  bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  bytes.insert(bytes.end(), png.begin() + kPngHeaderEnd, png.end());
  return bytes;
}

Bytes WithChunk(const Bytes& png, absl::string_view type, const Bytes& data) {
  const Bytes chunk = PngChunk(type, data);
  Bytes bytes = png;
  bytes.insert(bytes.begin() + kPngHeaderEnd, chunk.begin(), chunk.end());
  return bytes;
}

}  // namespace muster
