#include "worker/input/image/pixel_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

using Bytes = std::vector<uint8_t>;

// Pillow rounds after each axis, we once.
constexpr int kPillowTolerance = 1;
// A float32 sum beside a double one, at the border between two bytes.
constexpr double kRounding = 0.501;

struct Case {
  PixelSize src;
  PixelSize dst;
  int channels;
  Bytes wanted;
};

// Image.fromarray(SomeBytes).resize(dst, Image.BILINEAR) of Pillow 13.0.0.
const Case kPillow[] = {
    {{7, 5},
     {4, 3},
     1,
     {81, 122, 87, 161, 107, 140, 131, 121, 84, 124, 118, 146}},
    {{33, 40}, {5, 4}, 1, {129, 133, 141, 123, 129, 125, 129, 134, 140, 145,
                           124, 131, 130, 126, 118, 125, 138, 136, 128, 125}},
    {{9, 7}, {4, 2}, 3, {145, 84,  109, 158, 152, 144, 135, 144,
                         122, 90,  153, 99,  114, 148, 157, 143,
                         139, 114, 139, 129, 104, 102, 106, 124}},
    {{50, 30}, {1, 1}, 3, {125, 128, 126}},
    {{4, 3}, {9, 5}, 1, {60, 66, 81,  96,  112, 127, 149, 171, 180,
                         41, 50, 73,  98,  126, 153, 160, 163, 165,
                         12, 26, 62,  100, 146, 192, 176, 151, 142,
                         7,  29, 85,  134, 127, 119, 119, 121, 122,
                         4,  31, 101, 157, 114, 70,  81,  101, 108}},
    {{64, 2},
     {3, 4},
     1,
     {118, 136, 116, 125, 133, 120, 140, 128, 127, 147, 125, 130}},
};

size_t NumValues(const PixelSize& size, int channels) {
  return size_t{1} * size.width * size.height * channels;
}

Bytes SomeBytes(size_t size) {
  Bytes bytes;
  uint32_t state = 1;
  for (size_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<uint8_t>(state >> 24));
  }
  return bytes;
}

Bytes Scale(const Bytes& src, const PixelSize& src_size,
            const PixelSize& dst_size, int channels, PixelScaling* scaling) {
  // A byte more, to be left alone.
  Bytes dst(NumValues(dst_size, channels) + 1, 77);
  scaling->Scale(src.data(), src_size, dst_size, channels, dst.data());
  EXPECT_EQ(dst.back(), 77);
  dst.pop_back();
  return dst;
}

double Weight(int from, int to, double scale) {
  const double reach = std::max(scale, 1.0);
  return std::max(1 - std::abs((from + 0.5 - (to + 0.5) * scale) / reach), 0.0);
}

// Pixel by pixel, in double.
double PixelOf(const Bytes& src, const PixelSize& size, const PixelSize& dst,
               int channels, int x, int y, int c) {
  const double across = static_cast<double>(size.width) / dst.width;
  const double down = static_cast<double>(size.height) / dst.height;
  double sum = 0;
  double weights = 0;
  for (int from_y = 0; from_y < size.height; ++from_y) {
    for (int from_x = 0; from_x < size.width; ++from_x) {
      const double weight = Weight(from_x, x, across) * Weight(from_y, y, down);
      weights += weight;
      sum += weight * src[(from_y * size.width + from_x) * channels + c];
    }
  }
  return sum / weights;
}

TEST(PixelScalingTest, GivesPillowsPixels) {
  PixelScaling scaling;
  for (const Case& pillow : kPillow) {
    const Bytes src = SomeBytes(NumValues(pillow.src, pillow.channels));
    const Bytes found =
        Scale(src, pillow.src, pillow.dst, pillow.channels, &scaling);
    ASSERT_EQ(found.size(), pillow.wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], pillow.wanted[i], kPillowTolerance)
          << i << " of " << pillow.src.width;
    }
  }
}

TEST(PixelScalingTest, IsTheMeanByATriangleOfEachPixel) {
  PixelScaling scaling;
  // Longer than a run of 16 and than a block of 1024 values, and shorter; one
  // side larger while the other is smaller.
  const PixelSize kSizes[][2] = {{{400, 9}, {17, 4}}, {{1100, 5}, {3, 2}},
                                 {{5, 90}, {8, 7}},   {{2, 2}, {1, 1}},
                                 {{1, 1}, {3, 2}},    {{18, 12}, {6, 4}}};
  for (const auto& [src_size, dst_size] : kSizes) {
    for (const int channels : {1, 3}) {
      const Bytes src = SomeBytes(NumValues(src_size, channels));
      const Bytes found = Scale(src, src_size, dst_size, channels, &scaling);
      for (size_t i = 0; i < found.size(); ++i) {
        const int place = static_cast<int>(i) / channels;
        ASSERT_NEAR(
            found[i],
            PixelOf(src, src_size, dst_size, channels, place % dst_size.width,
                    place / dst_size.width, static_cast<int>(i) % channels),
            kRounding)
            << i << " of " << src_size.width << ", " << channels;
      }
    }
  }
}

TEST(PixelScalingTest, LeavesASideOfTheSameSizeToTheBit) {
  PixelScaling scaling;
  const Bytes src = SomeBytes(NumValues({21, 6}, 3));
  EXPECT_THAT(Scale(src, {21, 6}, {21, 6}, 3, &scaling), ElementsAreArray(src));
}

TEST(PixelScalingTest, WhiteStaysWhiteHoweverManyPixelsBecomeOne) {
  PixelScaling scaling;
  const PixelSize kLong = {65535, 40};
  const Bytes white(NumValues(kLong, 1), 255);
  EXPECT_THAT(Scale(white, kLong, {2, 1}, 1, &scaling), Each(255));
  EXPECT_THAT(Scale(white, {40, 65535}, {1, 2}, 1, &scaling), Each(255));
}

}  // namespace
}  // namespace muster
