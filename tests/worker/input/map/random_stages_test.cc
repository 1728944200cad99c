// Stages that draw: random_crop, random_flip, cutout.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/map/map_fixture.h"

namespace muster {
namespace {

using testing::UnorderedElementsAre;

using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;

constexpr char kAlwaysFlip[] =
    "type: 'random_flip' attr { name: 'probability' i: 1 }";

TEST(RandomCropTest, TakesEveryPlaceAndNoOther) {
  const Bytes image = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  EXPECT_THAT(MapManyTimes("type: 'random_crop' "
                           "attr { name: 'size' list { v: [1, 2] } }",
                           {2, 2, 3}, image),
              UnorderedElementsAre(Bytes{1, 2, 11, 12}, Bytes{2, 3, 12, 13},
                                   Bytes{4, 5, 14, 15}, Bytes{5, 6, 15, 16}));
}

TEST(RandomCropTest, PadsWithZerosOnAllSides) {
  EXPECT_THAT(MapManyTimes("type: 'random_crop' attr { name: 'padding' i: 1 }",
                           {1, 2, 2}, Floats{1, 2, 3, 4}),
              UnorderedElementsAre(
                  Floats{0, 0, 0, 1}, Floats{0, 0, 1, 2}, Floats{0, 0, 2, 0},
                  Floats{0, 1, 0, 3}, Floats{1, 2, 3, 4}, Floats{2, 0, 4, 0},
                  Floats{0, 3, 0, 0}, Floats{3, 4, 0, 0}, Floats{4, 0, 0, 0}));
}

TEST(RandomCropTest, MayLieInThePaddingAlone) {
  EXPECT_THAT(MapManyTimes("type: 'random_crop' attr { name: 'padding' i: 2 } "
                           "attr { name: 'size' list { v: [5, 1] } }",
                           {1, 1, 2}, Bytes{1, 2}),
              UnorderedElementsAre(Bytes{0, 0, 0, 0, 0}, Bytes{0, 0, 1, 0, 0},
                                   Bytes{0, 0, 2, 0, 0}));
}

TEST(RandomCropTest, TakesTheMiddleInEvaluation) {
  EXPECT_THAT(MapRow<uint8_t>({"type: 'random_crop' "
                               "attr { name: 'size' list { v: [2, 1] } } "
                               "attr { name: 'padding' i: 1 }"},
                              {1, 2, 3}, Bytes{1, 2, 3, 4, 5, 6}),
              IsOkAndHolds(Bytes{2, 5}));
}

TEST(RandomFlipTest, TurnsLinesRound) {
  const Floats image = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_THAT(
      MapRow<float>({kAlwaysFlip}, {2, 2, 3}, image, RowRandom(1, 0, 0)),
      IsOkAndHolds(Floats{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}));
  EXPECT_THAT(MapRow<uint8_t>({kAlwaysFlip}, {1, 2, 3}, Bytes{1, 2, 3, 4, 5, 6},
                              RowRandom(1, 0, 0)),
              IsOkAndHolds(Bytes{3, 2, 1, 6, 5, 4}));
}

TEST(RandomFlipTest, TwiceIsNothing) {
  const Floats image = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(MapRow<float>({kAlwaysFlip, kAlwaysFlip}, {1, 2, 3}, image,
                            RowRandom(1, 0, 0)),
              IsOkAndHolds(image));
}

TEST(RandomFlipTest, TurnsTheGivenFraction) {
  int turned = 0;
  for (int64_t example = 0; example < 1000; ++example) {
    const auto row = MapRow<uint8_t>(
        {"type: 'random_flip' attr { name: 'probability' f: 0.25 }"}, {1, 1, 2},
        Bytes{1, 2}, RowRandom(1, 0, example));
    ASSERT_THAT(row, IsOk());
    if (*row == Bytes{2, 1}) ++turned;
  }
  // Five standard deviations, 13.7 each.
  EXPECT_NEAR(turned, 250, 70);
}

TEST(CutoutTest, CutsAtTheBordersAndAlikeInAllChannels) {
  // Columns of a square of 3 around each of 4 pixels; its rows cover the image.
  EXPECT_THAT(MapManyTimes("type: 'cutout' attr { name: 'size' i: 3 }",
                           {2, 1, 4}, Floats{1, 2, 3, 4, 5, 6, 7, 8}),
              UnorderedElementsAre(Floats{0, 0, 3, 4, 0, 0, 7, 8},
                                   Floats{0, 0, 0, 4, 0, 0, 0, 8},
                                   Floats{1, 0, 0, 0, 5, 0, 0, 0},
                                   Floats{1, 2, 0, 0, 5, 6, 0, 0}));
}

TEST(CutoutTest, DrawsRowsAndColumnsApart) {
  EXPECT_THAT(
      MapManyTimes("type: 'cutout' attr { name: 'size' i: 2 }", {1, 3, 2},
                   Bytes{1, 2, 3, 4, 5, 6}),
      UnorderedElementsAre(Bytes{0, 2, 3, 4, 5, 6}, Bytes{0, 0, 3, 4, 5, 6},
                           Bytes{0, 2, 0, 4, 5, 6}, Bytes{0, 0, 0, 0, 5, 6},
                           Bytes{1, 2, 0, 4, 0, 6}, Bytes{1, 2, 0, 0, 0, 0}));
}

TEST(RandomStagesTest, DoNothingInEvaluation) {
  const Floats image = {1, 2, 3, 4};
  EXPECT_THAT(
      MapRow<float>({kAlwaysFlip, "type: 'cutout' attr { name: 'size' i: 2 }",
                     "type: 'random_crop' attr { name: 'padding' i: 1 }"},
                    {1, 2, 2}, image),
      IsOkAndHolds(image));
}

// The whole row as a number of its key: equal for the same, and each part of
// the key makes another.
TEST(RandomStagesTest, BitsAreThoseOfTheKey) {
  Floats image(32 * 32);
  for (size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<float>(i + 1);
  }
  const std::vector<std::string> stages = {
      "type: 'random_crop' attr { name: 'padding' i: 16 }",
      "type: 'random_flip'", "type: 'cutout' attr { name: 'size' i: 8 }"};
  const auto map = [&](const RowRandom& random) {
    return MapRow<float>(stages, {1, 32, 32}, image, random).value();
  };
  const Floats row = map(RowRandom(5, 1, 2));
  EXPECT_EQ(map(RowRandom(5, 1, 2)), row);
  EXPECT_NE(map(RowRandom(6, 1, 2)), row);
  EXPECT_NE(map(RowRandom(5, 2, 2)), row);
  EXPECT_NE(map(RowRandom(5, 1, 3)), row);
}

}  // namespace
}  // namespace muster
