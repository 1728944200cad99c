#include "worker/backend/cuda/cuda_layout.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using testing::ElementsAre;

TEST(CudaLayoutTest, HasNoGaps) {
  EXPECT_EQ(NhwcLayout({2, 3, 4, 5}).size_bytes, 2 * 3 * 4 * 5 * 4);
  EXPECT_EQ(KrscLayout({2, 3, 4, 5}).size_bytes, 2 * 3 * 4 * 5 * 4);
}

TEST(CudaLayoutTest, OneChannelIsRowMajor) {
  EXPECT_TRUE(NhwcLayout({2, 1, 4, 5}).is_row_major());
  EXPECT_TRUE(KrscLayout({2, 1, 4, 5}).is_row_major());
  EXPECT_TRUE(IsNhwc(NhwcLayout({2, 3, 4, 5})));
  EXPECT_FALSE(IsNhwc(KrscLayout({2, 3, 4, 5})));
}

TEST(CudaLayoutTest, FollowsNhwcAlone) {
  const Shape shape = {2, 3, 2, 2};
  EXPECT_EQ(LayoutBeside(NhwcLayout({2, 3, 4, 5}), shape), NhwcLayout(shape));
  for (const MemoryLayout& other :
       {KrscLayout({2, 3, 4, 5}), MemoryLayout::RowMajor(FLOAT32, {2, 3})}) {
    EXPECT_TRUE(LayoutBeside(other, shape).is_row_major());
  }
}

TEST(CudaLayoutTest, TellsStrides) {
  const auto last = StridedShapeOf(NhwcLayout({2, 3, 4, 5}));
  ASSERT_THAT(last, IsOk());
  EXPECT_THAT(last->sizes, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(last->strides, ElementsAre(60, 1, 15, 3));
  const auto matrix = StridedShapeOf(MemoryLayout::RowMajor(FLOAT32, {7, 5}));
  ASSERT_THAT(matrix, IsOk());
  EXPECT_THAT(matrix->sizes, ElementsAre(7, 5, 1, 1));
  EXPECT_THAT(matrix->strides, ElementsAre(5, 1, 1, 1));
}

TEST(CudaLayoutTest, RefusesOtherFormatsAndRanks) {
  MemoryLayout foreign = MemoryLayout::RowMajor(FLOAT32, {2, 3, 4, 5});
  foreign.format = "blocks 8b";
  EXPECT_THAT(StridedShapeOf(foreign),
              StatusIs(absl::StatusCode::kInvalidArgument));
  MemoryLayout matrix = MemoryLayout::RowMajor(FLOAT32, {2, 3});
  matrix.format = "nhwc";
  EXPECT_THAT(StridedShapeOf(matrix),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(StridedShapeOf(MemoryLayout::RowMajor(FLOAT32, {1, 2, 3, 4, 5})),
              StatusIs(absl::StatusCode::kUnimplemented));
}

}  // namespace
}  // namespace muster
