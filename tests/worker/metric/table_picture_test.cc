#include "worker/metric/table_picture.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The middles of the cells, row by row.
std::vector<int> Middles(const TablePicture& picture, int64_t cells) {
  std::vector<int> middles;
  const int64_t cell = picture.side / cells;
  for (int64_t row = 0; row < cells; ++row) {
    for (int64_t column = 0; column < cells; ++column) {
      const int64_t y = row * cell + cell / 2;
      middles.push_back(
          picture.pixels[y * picture.side + column * cell + cell / 2]);
    }
  }
  return middles;
}

TEST(TablePictureTest, IsDarkWhereARowsCountsAre) {
  const auto picture =
      DrawTable({"confusion_matrix", {{3, 1, 0}, {0, 0, 0}, {0, 5, 0}}});
  ASSERT_THAT(picture, IsOk());
  EXPECT_EQ(picture->side, 318);
  ASSERT_EQ(picture->pixels.size(), 318u * 318u);
  EXPECT_THAT(Middles(*picture, 3),
              ElementsAre(64, 191, 255, 255, 255, 255, 255, 0, 255));
  // A cell ends where the next one begins.
  EXPECT_EQ(picture->pixels[105], 64);
  EXPECT_EQ(picture->pixels[106], 191);
  EXPECT_EQ(picture->pixels[212 * 318 - 1], 255);
  EXPECT_EQ(picture->pixels[212 * 318 + 106], 0);
}

TEST(TablePictureTest, ALargeTableHasAPixelACell) {
  const std::vector<std::vector<int64_t>> counts(1000,
                                                 std::vector<int64_t>(1000, 1));
  const auto picture = DrawTable({"confusion_matrix", counts});
  ASSERT_THAT(picture, IsOk());
  EXPECT_EQ(picture->side, 1000);
  EXPECT_EQ(picture->pixels.size(), 1000u * 1000u);
}

TEST(TablePictureTest, RefusesWhatIsNotSquareByName) {
  EXPECT_THAT(DrawTable({"pairs", {{1, 2}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'pairs': wanted as many columns as its 1 "
                                 "rows, found 2")));
  EXPECT_THAT(DrawTable({"pairs", {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'pairs': it has no rows")));
}

}  // namespace
}  // namespace muster
