// worker/input/map/resize.cc beside PyTorch's rule.
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/map/map_fixture.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// A few roundings of float32 at values below 64.
constexpr float kTolerance = 1e-5;

// The example of torch.nn.Upsample's documentation (bilinear, twice the size).
TEST(ResizeTest, GrowsAsPyTorchDoes) {
  const auto row = MapRow<float>({"type: 'resize' attr { name: 'size' i: 4 }"},
                                 {1, 2, 2}, std::vector<float>{1, 2, 3, 4});
  EXPECT_THAT(row, IsOkAndHolds(std::vector<float>{1, 1.25, 1.75, 2, 1.5, 1.75,
                                                   2.25, 2.5, 2.5, 2.75, 3.25,
                                                   3.5, 3, 3.25, 3.75, 4}));
}

// Rows lie at 1/4 and 7/4, columns at 1/3, 2 and 11/3. The image is 10 y^2 +
// x^2, so that each result is the sum of the two interpolated squares.
TEST(ResizeTest, ShrinksAsPyTorchDoes) {
  std::vector<float> image;
  for (int c = 0; c < 2; ++c) {
    for (int y = 0; y < 3; ++y) {
      for (int x = 0; x < 5; ++x) {
        image.push_back(static_cast<float>((10 * y * y + x * x) * (1 - 2 * c)));
      }
    }
  }
  const auto row =
      MapRow<float>({"type: 'resize' attr { name: 'size' list { v: [2, 3] } }"},
                    {2, 3, 5}, image);
  ASSERT_THAT(row, IsOk());
  const std::vector<float> kWanted = {
      2.5f + 1.f / 3,   2.5f + 4,   2.5f + 41.f / 3,   //
      32.5f + 1.f / 3,  32.5f + 4,  32.5f + 41.f / 3,  //
      -2.5f - 1.f / 3,  -2.5f - 4,  -2.5f - 41.f / 3,  //
      -32.5f - 1.f / 3, -32.5f - 4, -32.5f - 41.f / 3};
  EXPECT_THAT(*row, Pointwise(FloatNear(kTolerance), kWanted));
}

TEST(ResizeTest, RoundsBytesToTheNearest) {
  const auto row = MapRow<uint8_t>(
      {"type: 'resize' attr { name: 'size' list { v: [1, 4] } }"}, {1, 1, 2},
      std::vector<uint8_t>{0, 255});
  // 0, 63.75, 191.25, 255.
  EXPECT_THAT(row, IsOkAndHolds(ElementsAre(0, 64, 191, 255)));
}

TEST(ResizeTest, TheSameSizeChangesNoBit) {
  const std::vector<float> image = {0.1f, 0.7f, -3, 1e-20f, 5, 6e9f};
  EXPECT_THAT(
      MapRow<float>({"type: 'resize' attr { name: 'size' list { v: [2, 3] } }"},
                    {1, 2, 3}, image),
      IsOkAndHolds(image));
}

TEST(ResizeTest, OnePixelFillsAnImageAndAnImageBecomesOnePixel) {
  EXPECT_THAT(MapRow<float>({"type: 'resize' attr { name: 'size' i: 2 }"},
                            {1, 1, 1}, std::vector<float>{5}),
              IsOkAndHolds(ElementsAre(5, 5, 5, 5)));
  // The middle of three rows and of three columns.
  EXPECT_THAT(
      MapRow<float>({"type: 'resize' attr { name: 'size' i: 1 }"}, {1, 3, 3},
                    std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8}),
      IsOkAndHolds(ElementsAre(4)));
}

}  // namespace
}  // namespace muster
