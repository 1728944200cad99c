#include "worker/input/image/png_image.h"

#include <zlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spng.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/image/image_fixture.h"
#include "worker/input/image/pixel_limit.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

Bytes Decode(const Bytes& png, int channels) {
  absl::StatusOr<PngImage> image = PngImage::Open(png, kMaxPixels);
  EXPECT_THAT(image, IsOk());
  if (!image.ok()) return {};
  Bytes pixels;
  EXPECT_THAT(image->Decode(channels, pixels), IsOk());
  const auto size =
      static_cast<size_t>(image->header().num_pixels() * channels);
  EXPECT_GE(pixels.size(), size);
  pixels.resize(size);
  return pixels;
}

absl::Status DecodeError(const Bytes& png, int64_t max_pixels = kMaxPixels) {
  absl::StatusOr<PngImage> image = PngImage::Open(png, max_pixels);
  if (!image.ok()) return image.status();
  Bytes pixels;
  return image->Decode(3, pixels);
}

// A 16-bit sample in this machine's order.
void Append16(uint16_t sample, Bytes& samples) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&sample);
  samples.insert(samples.end(), bytes, bytes + 2);
}

TEST(PngImageTest, ReadsColour) {
  const Bytes colours = {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3};
  const Bytes png = EncodePng(colours, 2, 2, {SPNG_COLOR_TYPE_TRUECOLOR});
  EXPECT_THAT(Decode(png, 3), ElementsAreArray(colours));
  // 0.299, 0.587 and 0.114 of 255, rounded.
  EXPECT_THAT(Decode(png, 1), ElementsAre(76, 150, 29, 2));
}

TEST(PngImageTest, ReadsInterlacedImages) {
  const Bytes pixels = SmoothPixels(13, 9, 3);
  EXPECT_THAT(
      Decode(EncodePng(pixels, 13, 9, {SPNG_COLOR_TYPE_TRUECOLOR, 8, true}), 3),
      ElementsAreArray(pixels));
  const Bytes grey = SmoothPixels(13, 9, 1);
  EXPECT_THAT(
      Decode(EncodePng(grey, 13, 9, {SPNG_COLOR_TYPE_GRAYSCALE, 8, true}), 1),
      ElementsAreArray(grey));
}

TEST(PngImageTest, ReadsGreyOfEveryDepth) {
  struct Case {
    int bit_depth;
    Bytes samples;
    Bytes wanted;
  };
  Bytes samples16;
  for (const uint16_t sample : {0x00ff, 0x80ff, 0xff00}) {
    Append16(sample, samples16);
  }
  for (const Case& form :
       {Case{1, {0b10100000}, {255, 0, 255}},
        Case{2, {0b00011011}, {0, 85, 170}},
        Case{4, {0x0f, 0x80}, {0, 255, 136}}, Case{8, {0, 7, 255}, {0, 7, 255}},
        Case{16, samples16, {0, 128, 255}}}) {
    SCOPED_TRACE(form.bit_depth);
    const Bytes png = EncodePng(form.samples, 3, 1,
                                {SPNG_COLOR_TYPE_GRAYSCALE, form.bit_depth});
    EXPECT_THAT(Decode(png, 1), ElementsAreArray(form.wanted));
    Bytes thrice;
    for (const uint8_t grey : form.wanted) thrice.insert(thrice.end(), 3, grey);
    EXPECT_THAT(Decode(png, 3), ElementsAreArray(thrice));
  }
}

TEST(PngImageTest, LeavesAlphaOut) {
  const Bytes grey =
      EncodePng({10, 0, 200, 255}, 2, 1, {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA});
  EXPECT_THAT(Decode(grey, 1), ElementsAre(10, 200));
  EXPECT_THAT(Decode(grey, 3), ElementsAre(10, 10, 10, 200, 200, 200));
  const Bytes colour = EncodePng({1, 2, 3, 0, 4, 5, 6, 128}, 2, 1,
                                 {SPNG_COLOR_TYPE_TRUECOLOR_ALPHA});
  EXPECT_THAT(Decode(colour, 3), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(PngImageTest, ReadsColourOf16Bits) {
  Bytes samples;
  for (const uint16_t sample : {0x01ff, 0x7f00, 0xfeff}) {
    Append16(sample, samples);
  }
  EXPECT_THAT(
      Decode(EncodePng(samples, 1, 1, {SPNG_COLOR_TYPE_TRUECOLOR, 16}), 3),
      ElementsAre(0x01, 0x7f, 0xfe));
}

TEST(PngImageTest, ReadsPalettesOfEveryDepth) {
  PngForm form = {SPNG_COLOR_TYPE_INDEXED};
  form.palette = {9, 8, 7, 100, 100, 100};
  for (const int depth : {1, 2, 4, 8}) {
    SCOPED_TRACE(depth);
    form.bit_depth = depth;
    // Entries 1 and 0.
    Bytes samples = {static_cast<uint8_t>(1 << (8 - depth))};
    if (depth == 8) samples.push_back(0);
    const Bytes png = EncodePng(samples, 2, 1, form);
    EXPECT_THAT(Decode(png, 3), ElementsAre(100, 100, 100, 9, 8, 7));
    EXPECT_THAT(Decode(png, 1), ElementsAre(100, 8));
  }
}

TEST(PngImageTest, ReadsHeaders) {
  PngForm form = {SPNG_COLOR_TYPE_GRAYSCALE_ALPHA};
  form.exif = ExifData(6, /*big_endian=*/true);
  const Bytes png = EncodePng(SmoothPixels(5, 3, 2), 5, 3, form);
  const absl::StatusOr<PngImage> image = PngImage::Open(png, kMaxPixels);
  ASSERT_THAT(image, IsOk());
  EXPECT_EQ(image->header().channels, 1);
  EXPECT_EQ(image->header().orientation, 6);
  EXPECT_EQ(image->header().stored_width, 5);
  EXPECT_EQ(image->header().width(), 3);
  EXPECT_EQ(image->header().height(), 5);
}

TEST(PngImageTest, RefusesTooManyPixelsByTheHeader) {
  const Bytes png =
      EncodePng(SmoothPixels(4, 4, 3), 4, 4, {SPNG_COLOR_TYPE_TRUECOLOR});
  EXPECT_THAT(DecodeError(WithSides(png, 65536, 65536)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("at most 67108864 pixels"),
                             HasSubstr("found 65536 x 65536"))));
  EXPECT_THAT(DecodeError(WithSides(png, 0x7fffffff, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found a side of more than that")));
  EXPECT_THAT(DecodeError(png, 16), IsOk());
  EXPECT_THAT(DecodeError(png, 15), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("found 4 x 4")));
  EXPECT_THAT(DecodeError(WithSides(png, 0, 4)),
              StatusIs(absl::StatusCode::kDataLoss));
  // Pixels that the file does not have.
  EXPECT_THAT(DecodeError(WithSides(png, 4, 5)),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(PngImageTest, RefusesBombsOfText) {
  const Bytes png =
      EncodePng(SmoothPixels(4, 4, 3), 4, 4, {SPNG_COLOR_TYPE_TRUECOLOR});
  const Bytes text(8 << 20, 'x');
  uLongf size = compressBound(text.size());
  Bytes bomb(3 + size);
  bomb[0] = 'k';  // The keyword, its end, and the method: deflate.
  ASSERT_EQ(compress(bomb.data() + 3, &size, text.data(), text.size()), Z_OK);
  bomb.resize(3 + size);
  EXPECT_THAT(DecodeError(WithChunk(png, "zTXt", bomb)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("text or profiles that are too large")));
  Bytes plain(17 << 20, 'x');
  plain[1] = 0;
  EXPECT_THAT(DecodeError(WithChunk(png, "tEXt", plain)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("text or profiles that are too large")));
  plain.resize(3 << 20);
  EXPECT_THAT(DecodeError(WithChunk(png, "tEXt", plain)), IsOk());
}

TEST(PngImageTest, RefusesWhatIsCutShort) {
  for (const bool interlaced : {false, true}) {
    const Bytes png = EncodePng(NoisyPixels(40, 30), 40, 30,
                                {SPNG_COLOR_TYPE_TRUECOLOR, 8, interlaced});
    // The last four bytes are the checksum of the empty end chunk.
    for (size_t size = 0; size < png.size() - 4; size += 16) {
      const Bytes cut(png.begin(), png.begin() + size);
      EXPECT_THAT(DecodeError(cut), StatusIs(absl::StatusCode::kDataLoss))
          << size << " of " << png.size();
    }
    const Bytes cut(png.begin(), png.end() - 5);
    EXPECT_THAT(DecodeError(cut), StatusIs(absl::StatusCode::kDataLoss,
                                           HasSubstr("cut short or damaged")));
  }
}

TEST(PngImageTest, RefusesDamagedPixels) {
  const Bytes png =
      EncodePng(NoisyPixels(40, 30), 40, 30, {SPNG_COLOR_TYPE_TRUECOLOR});
  // The end chunk has 12 bytes.
  for (size_t at = 8; at < png.size() - 12; at += 7) {
    Bytes damaged = png;
    damaged[at] ^= 0x10;
    EXPECT_FALSE(DecodeError(damaged).ok()) << at;
  }
}

}  // namespace
}  // namespace muster
