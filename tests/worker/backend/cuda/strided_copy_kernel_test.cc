#include "worker/backend/cuda/strided_copy_kernel.h"

#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

using testing::ElementsAre;
using Floats = std::vector<float>;

constexpr float kUntouched = -1;

// 0, 1, 2, ...
Floats Counted(int64_t n) {
  Floats values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

Floats Copy(const StridedCopyShape& shape, const Floats& src, int64_t dst_size,
            int64_t dst_offset = 0) {
  Floats dst(dst_size, kUntouched);
  const HostStream stream;
  EXPECT_THAT(
      StridedCopy(stream.get(), shape, src.data(), dst.data() + dst_offset),
      IsOk());
  return dst;
}

TEST(StridedCopyKernelTest, ReordersRowMajorAndChannelsLast) {
  const Index4 sizes = {3, 5, 2, 7};
  const Index4 row_major = {70, 14, 7, 1};
  const Index4 channels_last = {70, 1, 35, 5};
  const Floats src = Counted(210);
  const Floats last = Copy({sizes, channels_last, sizes, row_major}, src, 210);
  for (int n = 0; n < 3; ++n)
    for (int c = 0; c < 5; ++c)
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 7; ++x) {
          ASSERT_EQ(last[((n * 2 + y) * 7 + x) * 5 + c],
                    src[((n * 5 + c) * 2 + y) * 7 + x]);
        }
  EXPECT_EQ(Copy({sizes, row_major, sizes, channels_last}, last, 210), src);
}

TEST(StridedCopyKernelTest, PadsWithZerosOnEachSide) {
  // Rows {0, 1, 2} and {3, 4, 5}: a row above, a column left, two right.
  StridedCopyShape shape = {
      {1, 1, 3, 6}, {18, 18, 6, 1}, {1, 1, 2, 3}, {6, 6, 3, 1}};
  shape.begin = {0, 0, -1, -1};
  EXPECT_THAT(Copy(shape, Counted(6), 18), ElementsAre(0, 0, 0, 0, 0, 0,  //
                                                       0, 0, 1, 2, 0, 0,  //
                                                       0, 3, 4, 5, 0, 0));
}

TEST(StridedCopyKernelTest, CropsWhatWasPadded) {
  StridedCopyShape shape = {
      {1, 1, 2, 3}, {6, 6, 3, 1}, {1, 1, 3, 6}, {18, 18, 6, 1}};
  shape.begin = {0, 0, 1, 1};
  EXPECT_THAT(Copy(shape, Counted(18), 6), ElementsAre(7, 8, 9, 13, 14, 15));
}

TEST(StridedCopyKernelTest, WritesNothingBetweenStrides) {
  const StridedCopyShape shape = {
      {2, 2, 1, 1}, {5, 1, 1, 1}, {2, 2, 1, 1}, {2, 1, 1, 1}};
  EXPECT_THAT(Copy(shape, {10, 11, 12, 13}, 10, /*dst_offset=*/2),
              ElementsAre(-1, -1, 10, 11, -1, -1, -1, 12, 13, -1));
}

TEST(StridedCopyKernelTest, CopiesOneElementAndNone) {
  const Index4 ones = {1, 1, 1, 1};
  EXPECT_THAT(Copy({ones, ones, ones, ones}, {7}, 1), ElementsAre(7));
  EXPECT_THAT(Copy({{0, 1, 1, 1}, ones, {0, 1, 1, 1}, ones}, {}, 1),
              ElementsAre(kUntouched));
}

TEST(StridedCopyKernelTest, TakesMoreElementsThanTheGridHasThreads) {
  const int64_t n = kMostBlocks * kBlockThreads + 5;
  const Index4 sizes = {n, 1, 1, 1}, strides = {1, 1, 1, 1};
  EXPECT_EQ(Copy({sizes, strides, sizes, strides}, Counted(n), n), Counted(n));
}

}  // namespace
}  // namespace muster
