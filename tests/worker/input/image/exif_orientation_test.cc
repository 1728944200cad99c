#include "worker/input/image/exif_orientation.h"

#include "gtest/gtest.h"
#include "tests/worker/input/image/image_fixture.h"

namespace muster {
namespace {

TEST(ExifOrientationTest, ReadsBothByteOrders) {
  for (uint16_t wanted = 1; wanted <= 8; ++wanted) {
    EXPECT_EQ(ExifOrientation(ExifData(wanted, /*big_endian=*/false)), wanted);
    EXPECT_EQ(ExifOrientation(ExifData(wanted, /*big_endian=*/true)), wanted);
  }
  EXPECT_FALSE(IsTransposed(4));
  EXPECT_TRUE(IsTransposed(5));
}

TEST(ExifOrientationTest, IsUprightWhereNoneIsStated) {
  EXPECT_EQ(ExifOrientation({}), kUpright);
  EXPECT_EQ(ExifOrientation(ExifData(0, false)), kUpright);
  EXPECT_EQ(ExifOrientation(ExifData(9, true)), kUpright);
  Bytes long_value = ExifData(6, false);
  long_value[24] = 4;  // The orientation's type.
  EXPECT_EQ(ExifOrientation(long_value), kUpright);
}

TEST(ExifOrientationTest, BelievesNoOffsetAndNoCount) {
  const Bytes whole = ExifData(6, /*big_endian=*/true);
  // Its value ends at byte 32.
  for (size_t size = 0; size < 32; ++size) {
    // On the heap, and no longer: a sanitizer sees what is read beyond.
    const Bytes cut(whole.begin(), whole.begin() + size);
    EXPECT_EQ(ExifOrientation(cut), kUpright) << size;
  }
  for (const uint8_t offset : {0x7f, 0xff}) {
    Bytes far = whole;
    for (size_t i = 4; i < 8; ++i) far[i] = offset;
    EXPECT_EQ(ExifOrientation(far), kUpright);
  }
  Bytes many = ExifData(0, true);
  many[8] = many[9] = 0xff;
  EXPECT_EQ(ExifOrientation(many), kUpright);
}

TEST(ExifOrientationTest, FindsTheSegmentOfAJpeg) {
  const Bytes jpeg = EncodeJpeg(SmoothPixels(8, 8, 3), 8, 8, 3);
  EXPECT_EQ(JpegOrientation(jpeg), kUpright);
  const Bytes turned = WithExif(jpeg, ExifData(6, false));
  EXPECT_EQ(JpegOrientation(turned), 6);
  // The first counts; bytes 0xff fill the space before it.
  Bytes twice = WithExif(turned, ExifData(3, true));
  twice.insert(twice.begin() + 2, 3, 0xff);
  EXPECT_EQ(JpegOrientation(twice), 3);
}

TEST(ExifOrientationTest, BelievesNoLengthOfASegment) {
  const Bytes turned =
      WithExif(EncodeJpeg(SmoothPixels(8, 8, 3), 8, 8, 3), ExifData(6, false));
  for (size_t size = 0; size < 12 + 32; ++size) {
    const Bytes cut(turned.begin(), turned.begin() + size);
    EXPECT_EQ(JpegOrientation(cut), kUpright) << size;
  }
  for (const uint8_t length : {0, 1}) {
    Bytes short_length = turned;
    short_length[4] = 0;
    short_length[5] = length;
    EXPECT_EQ(JpegOrientation(short_length), kUpright);
  }
}

}  // namespace
}  // namespace muster
