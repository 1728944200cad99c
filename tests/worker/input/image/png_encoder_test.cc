#include "worker/input/image/png_encoder.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/image/image_fixture.h"
#include "worker/input/image/pixel_limit.h"
#include "worker/input/image/png_image.h"

namespace muster {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

// The pixels as our own reader finds them.
Bytes Read(const std::string& file, const ImagePixels& wanted) {
  const Bytes png(file.begin(), file.end());
  absl::StatusOr<PngImage> image = PngImage::Open(png, kMaxPixels);
  EXPECT_THAT(image, IsOk());
  if (!image.ok()) return {};
  EXPECT_EQ(image->header().height(), wanted.height);
  EXPECT_EQ(image->header().width(), wanted.width);
  EXPECT_EQ(image->header().channels, wanted.channels);
  Bytes pixels(wanted.values.size());
  EXPECT_THAT(image->Decode(static_cast<int>(wanted.channels), pixels), IsOk());
  return pixels;
}

void ExpectSamePixels(int height, int width, int channels) {
  SCOPED_TRACE(testing::Message() << height << " x " << width);
  const Bytes pixels = SmoothPixels(width, height, channels);
  const ImagePixels image{height, width, channels, pixels};
  const absl::StatusOr<std::string> png = EncodePng(image);
  ASSERT_THAT(png, IsOk());
  EXPECT_THAT(Read(*png, image), ElementsAreArray(pixels));
}

TEST(PngEncoderTest, KeepsEveryPixel) {
  for (const int channels : {1, 3}) {
    ExpectSamePixels(1, 1, channels);
    ExpectSamePixels(1, 7, channels);
    ExpectSamePixels(13, 9, channels);
  }
}

TEST(PngEncoderTest, RefusesWhatIsNoImage) {
  const Bytes pixels(12);
  const auto code = [&pixels](int64_t height, int64_t width, int64_t channels) {
    return EncodePng({height, width, channels, pixels}).status().code();
  };
  EXPECT_EQ(code(2, 2, 3), absl::StatusCode::kOk);
  EXPECT_EQ(code(0, 2, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(2, 0, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(-2, -2, 3), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(3, 2, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(EncodePng({2, 2, 1, pixels}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found [2, 2, 1] with 12 values")));
}

}  // namespace
}  // namespace muster
