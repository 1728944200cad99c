#include "worker/input/image/example_pixels.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ExamplePixelsTest, ImagesHaveRankThreeAndOneOrThreeChannels) {
  EXPECT_TRUE(IsImage(Shape({1, 28, 28})));
  EXPECT_TRUE(IsImage(Shape({3, 1, 1})));
  EXPECT_FALSE(IsImage(Shape({2, 28, 28})));
  EXPECT_FALSE(IsImage(Shape({784})));
  EXPECT_FALSE(IsImage(Shape({28, 28})));
}

TEST(ExamplePixelsTest, FractionsKeepTheirBrightness) {
  EXPECT_THAT(ExamplePixels({0.25f, 0.5f, 0.25f, 0.5f}, Shape({1, 2, 2})),
              ElementsAre(64, 128, 64, 128));
}

TEST(ExamplePixelsTest, OtherValuesAreSpreadFromTheLeastToTheLargest) {
  EXPECT_THAT(ExamplePixels({-1, 0, 3}, Shape({1, 1, 3})),
              ElementsAre(0, 64, 255));
  // Farther apart than any float.
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_THAT(ExamplePixels({-kMax, 0, kMax}, Shape({1, 1, 3})),
              ElementsAre(0, 128, 255));
}

TEST(ExamplePixelsTest, EqualValuesOutsideTheUnitAreBlack) {
  EXPECT_THAT(ExamplePixels({7, 7}, Shape({1, 1, 2})), ElementsAre(0, 0));
}

TEST(ExamplePixelsTest, TurnsChannelsFirstIntoChannelsLast) {
  // Two pixels: red, and green with some blue.
  EXPECT_THAT(ExamplePixels({1, 0, 0, 1, 0, 0.2f}, Shape({3, 1, 2})),
              ElementsAre(255, 0, 0, 0, 255, 51));
}

TEST(ExamplePixelsTest, ValuesThatAreNotFiniteAreBlack) {
  EXPECT_THAT(
      ExamplePixels({NAN, 2, 4, kInfinity, -kInfinity}, Shape({1, 1, 5})),
      ElementsAre(0, 0, 255, 0, 0));
  EXPECT_THAT(ExamplePixels({NAN, NAN}, Shape({1, 1, 2})), ElementsAre(0, 0));
}

}  // namespace
}  // namespace muster
