#include "worker/input/image/image_decoder.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spng.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/image/image_fixture.h"
#include "worker/input/image/jpeg_decoder.h"
#include "worker/input/image/pixel_scaling.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

// The best quality rounds coefficients to integers: a pixel moves by 1 or 2.
constexpr int kJpegTolerance = 3;

constexpr int kWidth = 40;
constexpr int kHeight = 30;

ImageDecoder MakeDecoder(const ImageDecoder::Options& options) {
  absl::StatusOr<ImageDecoder> decoder = ImageDecoder::Create(options);
  EXPECT_THAT(decoder, IsOk());
  return *std::move(decoder);
}

Bytes Copy(const DecodedImage& image) {
  return Bytes(image.pixels.begin(), image.pixels.end());
}

// Decodes `file` as [H, W, channels].
absl::StatusOr<Bytes> DecodePacked(const Bytes& file, int channels) {
  ImageDecoder decoder = MakeDecoder({channels});
  const absl::StatusOr<DecodedImage> image = decoder.Decode(file);
  if (!image.ok()) return image.status();
  EXPECT_EQ(image->pixels.size(),
            size_t{1} * image->width * image->height * channels);
  return Copy(*image);
}

void ExpectNear(const Bytes& found, const Bytes& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i], kJpegTolerance) << i;
  }
}

Bytes ColourJpeg() {
  return EncodeJpeg(SmoothPixels(kWidth, kHeight, 3), kWidth, kHeight, 3);
}

TEST(ImageDecoderTest, ReadsJpegs) {
  const Bytes pixels = SmoothPixels(kWidth, kHeight, 3);
  for (const Bytes& jpeg :
       {ColourJpeg(), EncodeProgressiveJpeg(pixels, kWidth, kHeight)}) {
    const absl::StatusOr<Bytes> found = DecodePacked(jpeg, 3);
    ASSERT_THAT(found, IsOk());
    ExpectNear(*found, pixels);
  }
}

TEST(ImageDecoderTest, MakesColourOfGreyAndGreyOfColour) {
  const Bytes grey = SmoothPixels(kWidth, kHeight, 1);
  Bytes thrice;
  for (const uint8_t pixel : grey) thrice.insert(thrice.end(), 3, pixel);
  const Bytes grey_jpeg = EncodeJpeg(grey, kWidth, kHeight, 1);
  const absl::StatusOr<Bytes> colour = DecodePacked(grey_jpeg, 3);
  ASSERT_THAT(colour, IsOk());
  ExpectNear(*colour, thrice);
  for (size_t i = 0; i < colour->size(); i += 3) {
    ASSERT_THAT(Bytes(colour->begin() + i, colour->begin() + i + 3),
                testing::Each((*colour)[i]));
  }
  const absl::StatusOr<Bytes> back =
      DecodePacked(EncodeJpeg(thrice, kWidth, kHeight, 3), 1);
  ASSERT_THAT(back, IsOk());
  ExpectNear(*back, grey);
}

// 3 x 2 pixels, as they are seen under each orientation of EXIF 2.3, table 6.
struct Turned {
  int orientation;
  int width;
  Bytes pixels;
};

const Turned kTurned[] = {
    {1, 3, {1, 2, 3, 4, 5, 6}}, {2, 3, {3, 2, 1, 6, 5, 4}},
    {3, 3, {6, 5, 4, 3, 2, 1}}, {4, 3, {4, 5, 6, 1, 2, 3}},
    {5, 2, {1, 4, 2, 5, 3, 6}}, {6, 2, {4, 1, 5, 2, 6, 3}},
    {7, 2, {6, 3, 5, 2, 4, 1}}, {8, 2, {3, 6, 2, 5, 1, 4}}};

TEST(ImageDecoderTest, TurnsPngs) {
  for (const Turned& turned : kTurned) {
    SCOPED_TRACE(turned.orientation);
    PngForm form = {SPNG_COLOR_TYPE_GRAYSCALE};
    form.exif = ExifData(static_cast<uint16_t>(turned.orientation), true);
    const Bytes png = EncodePng({1, 2, 3, 4, 5, 6}, 3, 2, form);
    ImageDecoder grey = MakeDecoder({1});
    const absl::StatusOr<DecodedImage> image = grey.Decode(png);
    ASSERT_THAT(image, IsOk());
    EXPECT_EQ(image->width, turned.width);
    EXPECT_EQ(image->height, 6 / turned.width);
    EXPECT_THAT(Copy(*image), ElementsAreArray(turned.pixels));
    Bytes thrice;
    for (const uint8_t pixel : turned.pixels) {
      thrice.insert(thrice.end(), 3, pixel);
    }
    ImageDecoder colour = MakeDecoder({3});
    EXPECT_THAT(Copy(*colour.Decode(png)), ElementsAreArray(thrice));
  }
}

TEST(ImageDecoderTest, TurnsJpegs) {
  const Bytes jpeg = ColourJpeg();
  const absl::StatusOr<Bytes> stored = DecodePacked(jpeg, 3);
  ASSERT_THAT(stored, IsOk());
  const Bytes turned = WithExif(jpeg, ExifData(6, /*big_endian=*/false));
  ImageDecoder decoder = MakeDecoder({3});
  const absl::StatusOr<DecodedImage> image = decoder.Decode(turned);
  ASSERT_THAT(image, IsOk());
  ASSERT_EQ(image->width, kHeight);
  ASSERT_EQ(image->height, kWidth);
  // Its first row is the first column of the stored one, from below.
  for (size_t x = 0; x < kHeight; ++x) {
    for (size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(image->pixels[x * 3 + c],
                (*stored)[(kHeight - 1 - x) * kWidth * 3 + c]);
    }
  }
}

// Wide noise, as grass and hair have it: what scales of a JPEG differ in.
Bytes TexturedJpeg(int width, int height) {
  Bytes pixels = SmoothPixels(width, height, 3);
  const Bytes noise = NoisyPixels(width, height);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>((pixels[i] + noise[i]) / 2);
  }
  return EncodeJpeg(pixels, width, height, 3);
}

// The mean difference of `found` from the whole image, scaled.
double DifferenceOfWhole(const Bytes& jpeg, const DecodedImage& found) {
  ImageDecoder decoder = MakeDecoder({3});
  const absl::StatusOr<DecodedImage> whole = decoder.Decode(jpeg);
  EXPECT_THAT(whole, IsOk());
  Bytes wanted(found.pixels.size());
  PixelScaling().Scale(whole->pixels.data(), {whole->width, whole->height},
                       {found.width, found.height}, 3, wanted.data());
  double sum = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    sum += std::abs(int{found.pixels[i]} - int{wanted[i]});
  }
  return sum / static_cast<double>(wanted.size());
}

TEST(ImageDecoderTest, ShrinksTheWholeJpegUnlessAskedForTheScaledOne) {
  const Bytes jpeg = TexturedJpeg(160, 120);
  ImageDecoder full = MakeDecoder({3, 20, 15});
  const absl::StatusOr<DecodedImage> whole = full.Decode(jpeg);
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(DifferenceOfWhole(jpeg, *whole), 0);
  ImageDecoder fast = MakeDecoder({3, 20, 15, kMaxPixels, SCALED});
  const absl::StatusOr<DecodedImage> scaled = fast.Decode(jpeg);
  ASSERT_THAT(scaled, IsOk());
  EXPECT_GT(DifferenceOfWhole(jpeg, *scaled), 0);
}

TEST(ImageDecoderTest, ScalesToTheSizeAsItIsSeen) {
  const Bytes pixels = SmoothPixels(kWidth, kHeight, 3);
  Bytes scaled(5 * 6 * 3);
  for (const int orientation : {1, 3, 6, 8}) {
    const Bytes exif = ExifData(static_cast<uint16_t>(orientation), false);
    PngForm form = {SPNG_COLOR_TYPE_TRUECOLOR};
    form.exif = exif;
    const Bytes png = EncodePng(pixels, kWidth, kHeight, form);
    ImageDecoder turning = MakeDecoder({3});
    const absl::StatusOr<DecodedImage> upright = turning.Decode(png);
    ASSERT_THAT(upright, IsOk());
    PixelScaling().Scale(upright->pixels.data(),
                         {upright->width, upright->height}, {5, 6}, 3,
                         scaled.data());
    ImageDecoder decoder = MakeDecoder({3, 5, 6});
    for (const Bytes& file : {png, WithExif(ColourJpeg(), exif)}) {
      const absl::StatusOr<DecodedImage> image = decoder.Decode(file);
      ASSERT_THAT(image, IsOk());
      EXPECT_EQ(image->width, 5);
      EXPECT_EQ(image->height, 6);
      ExpectNear(Copy(*image), scaled);
    }
  }
}

TEST(ImageDecoderTest, ScaledJpegsAreDecodedAtTheSmallestScaleThatIsEnough) {
  struct Case {
    int width, height, orientation;
    PixelSize wanted;
  };
  for (const Case& decoded :
       {Case{0, 0, 1, {40, 30}}, Case{5, 4, 1, {5, 4}}, Case{6, 4, 1, {10, 8}},
        Case{1, 8, 1, {10, 8}}, Case{11, 1, 1, {20, 15}},
        Case{20, 16, 1, {40, 30}}, Case{99, 1, 1, {40, 30}},
        Case{8, 10, 6, {10, 8}}}) {
    ImageHeader header;
    header.stored_width = kWidth;
    header.stored_height = kHeight;
    header.orientation = decoded.orientation;
    EXPECT_TRUE(ScaledJpegSize(header, decoded.width, decoded.height) ==
                decoded.wanted)
        << decoded.width << " x " << decoded.height;
  }
}

TEST(ImageDecoderTest, ReadsHeaders) {
  ImageDecoder decoder = MakeDecoder({1});
  const absl::StatusOr<ImageHeader> jpeg =
      decoder.ReadHeader(WithExif(ColourJpeg(), ExifData(8, true)));
  ASSERT_THAT(jpeg, IsOk());
  EXPECT_EQ(jpeg->width(), kHeight);
  EXPECT_EQ(jpeg->height(), kWidth);
  EXPECT_EQ(jpeg->channels, 3);
  const absl::StatusOr<ImageHeader> png = decoder.ReadHeader(
      EncodePng(SmoothPixels(5, 3, 1), 5, 3, {SPNG_COLOR_TYPE_GRAYSCALE}));
  ASSERT_THAT(png, IsOk());
  EXPECT_EQ(png->width(), 5);
  EXPECT_EQ(png->height(), 3);
  EXPECT_EQ(png->channels, 1);
}

TEST(ImageDecoderTest, UsesItsBuffersAgain) {
  ImageDecoder decoder = MakeDecoder({3});
  const Bytes big = ColourJpeg();
  const Bytes small =
      EncodePng({1, 2, 3, 4, 5, 6}, 2, 1, {SPNG_COLOR_TYPE_TRUECOLOR});
  const absl::StatusOr<DecodedImage> first = decoder.Decode(big);
  ASSERT_THAT(first, IsOk());
  const Bytes pixels = Copy(*first);
  const uint8_t* const place = first->pixels.data();
  const absl::StatusOr<DecodedImage> second = decoder.Decode(small);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->pixels.data(), place);
  EXPECT_THAT(Copy(*second), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(decoder.Decode(Bytes(big.begin(), big.end() - 20)),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Copy(*decoder.Decode(big)), ElementsAreArray(pixels));
}

TEST(ImageDecoderTest, RefusesCmykByName) {
  const Bytes jpeg =
      EncodeJpeg(SmoothPixels(kWidth, kHeight, 4), kWidth, kHeight, 4);
  EXPECT_THAT(DecodePacked(jpeg, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("in CMYK"), HasSubstr("convert it"))));
}

TEST(ImageDecoderTest, RefusesTooManyPixelsByTheHeader) {
  // The sides follow the marker of the frame, its length and its depth.
  Bytes jpeg = ColourJpeg();
  const uint8_t sides[] = {0, kHeight, 0, kWidth};
  auto at = std::search(jpeg.begin(), jpeg.end(), sides, sides + 4);
  ASSERT_NE(at, jpeg.end());
  // The most that libjpeg takes: 65500.
  const uint8_t most[] = {0xff, 0xdc, 0xff, 0xdc};
  std::copy(most, most + 4, at);
  EXPECT_THAT(DecodePacked(jpeg, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("at most 67108864 pixels"),
                             HasSubstr("found 65500 x 65500"))));
  ImageDecoder::Options options;
  options.max_pixels = kWidth * kHeight - 1;
  EXPECT_THAT(MakeDecoder(options).ReadHeader(ColourJpeg()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  options.max_pixels = kWidth * kHeight;
  EXPECT_THAT(MakeDecoder(options).Decode(ColourJpeg()), IsOk());
  // A line of it would take ten times its pixels.
  const Bytes png = EncodePng(Bytes(65536), 65536, 1, {});
  EXPECT_THAT(DecodePacked(png, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("sides of at most 65535")));
}

TEST(ImageDecoderTest, RefusesJpegsThatAreCutShort) {
  for (const Bytes& jpeg :
       {ColourJpeg(), EncodeProgressiveJpeg(SmoothPixels(kWidth, kHeight, 3),
                                            kWidth, kHeight)}) {
    for (size_t size = 16; size < jpeg.size(); size += 16) {
      const Bytes cut(jpeg.begin(), jpeg.begin() + size);
      EXPECT_THAT(DecodePacked(cut, 3), StatusIs(absl::StatusCode::kDataLoss))
          << size << " of " << jpeg.size();
    }
    const Bytes cut(jpeg.begin(), jpeg.end() - 1);
    EXPECT_THAT(DecodePacked(cut, 3),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("cut short"), HasSubstr("anew"))));
  }
}

TEST(ImageDecoderTest, RefusesWhatTurboJpegOnlyWarnsOf) {
  // Half of the pixels, and all markers.
  const Bytes whole = ColourJpeg();
  Bytes jpeg(whole.begin(), whole.end() - 200);
  jpeg.insert(jpeg.end(), whole.end() - 2, whole.end());
  EXPECT_THAT(DecodePacked(jpeg, 3),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("premature end of data segment")));
}

TEST(ImageDecoderTest, SaysWhatIsNoImage) {
  const auto refuses = [](const std::string& file, const std::string& found) {
    EXPECT_THAT(DecodePacked(Bytes(file.begin(), file.end()), 3),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("JPEG or a PNG, found " + found)));
  };
  refuses("", "an empty file");
  refuses("GIF89a...", "a GIF");
  refuses("RIFF1234WEBP", "a WebP");
  refuses("\xff\xd8", "bytes of neither");
  refuses("<html>", "bytes of neither");
  ImageDecoder decoder = MakeDecoder({});
  EXPECT_THAT(
      decoder.ReadHeader(Bytes{'B', 'M'}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found a BMP")));
}

TEST(ImageDecoderTest, RefusesOptionsByName) {
  EXPECT_THAT(ImageDecoder::Create({4}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 (grey) or 3 (RGB) channels, found 4")));
  EXPECT_THAT(ImageDecoder::Create({3, -1, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ImageDecoder::Create({3, 5, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("wanted a size, or 0 x 0")));
  EXPECT_THAT(ImageDecoder::Create({3, 0, 0, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
