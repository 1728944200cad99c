#include "worker/backend/cuda/pool_kernel.h"

#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/host_stream.h"

namespace muster {
namespace {

using testing::ElementsAre;
using Floats = std::vector<float>;

constexpr int32_t kNone = -1;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One plane, row-major.
PoolShape Plane(int64_t height, int64_t width, const WindowDesc& window) {
  PoolShape shape;
  shape.height = height;
  shape.width = width;
  shape.dst_height = window.dst_h(height);
  shape.dst_width = window.dst_w(width);
  shape.window = window;
  return shape;
}

int64_t DstElements(const PoolShape& s) {
  return s.outer * s.dst_height * s.dst_width * s.inner;
}

struct MaxPooled {
  Floats dst;
  std::vector<int32_t> argmax;
};

class PoolKernelTest : public testing::Test {
 protected:
  MaxPooled MaxForward(const PoolShape& shape, bool relu, const Floats& src) {
    MaxPooled pooled = {Floats(DstElements(shape)),
                        std::vector<int32_t>(DstElements(shape))};
    EXPECT_THAT(MaxPoolForward(stream_.get(), shape, relu, src.data(),
                               pooled.dst.data(), pooled.argmax.data()),
                IsOk());
    return pooled;
  }
  Floats MaxBackward(const PoolShape& shape, const std::vector<int32_t>& argmax,
                     const Floats& diff_dst, int64_t size) {
    Floats diff_src(size, -1);
    EXPECT_THAT(MaxPoolBackward(stream_.get(), shape, argmax.data(),
                                diff_dst.data(), diff_src.data()),
                IsOk());
    return diff_src;
  }
  Floats AverageForward(const PoolShape& shape, const Floats& src) {
    Floats dst(DstElements(shape));
    EXPECT_THAT(
        AveragePoolForward(stream_.get(), shape, src.data(), dst.data()),
        IsOk());
    return dst;
  }
  Floats AverageBackward(const PoolShape& shape, const Floats& diff_dst,
                         int64_t size) {
    Floats diff_src(size, -1);
    EXPECT_THAT(AveragePoolBackward(stream_.get(), shape, diff_dst.data(),
                                    diff_src.data()),
                IsOk());
    return diff_src;
  }

  HostStream stream_;
};

TEST_F(PoolKernelTest, OnePixel) {
  const PoolShape shape = Plane(1, 1, {});
  const MaxPooled pooled = MaxForward(shape, false, {-3});
  EXPECT_THAT(pooled.dst, ElementsAre(-3));
  EXPECT_THAT(pooled.argmax, ElementsAre(0));
  EXPECT_THAT(MaxBackward(shape, pooled.argmax, {5}, 1), ElementsAre(5));
  EXPECT_THAT(AverageForward(shape, {-3}), ElementsAre(-3));
  EXPECT_THAT(AverageBackward(shape, {5}, 1), ElementsAre(5));
}

TEST_F(PoolKernelTest, ATieGoesToTheFirstInRowMajorOrder) {
  const PoolShape shape = Plane(2, 2, {2, 2, 2, 2, 0, 0, 0, 0});
  EXPECT_THAT(MaxForward(shape, false, {1, 2, 2, 2}).argmax, ElementsAre(1));
  EXPECT_THAT(MaxForward(shape, false, {1, 1, 2, 2}).argmax, ElementsAre(2));
}

TEST_F(PoolKernelTest, ReluCutsAllThatIsNotPositive) {
  const PoolShape shape = Plane(2, 2, {2, 1, 1, 1, 0, 0, 0, 0});
  const MaxPooled pooled = MaxForward(shape, true, {-1, -2, 0, 3});
  EXPECT_THAT(pooled.dst, ElementsAre(0, 3));
  EXPECT_THAT(pooled.argmax, ElementsAre(kNone, 3));
  EXPECT_THAT(MaxBackward(shape, pooled.argmax, {7, 5}, 4),
              ElementsAre(0, 0, 0, 5));
}

// 3x3 windows over one row with unequal pads: columns -1..1, 1..3, 3..5 of 5.
TEST_F(PoolKernelTest, LeavesPaddingOut) {
  const PoolShape shape = Plane(1, 5, {3, 3, 1, 2, 2, 0, 1, 1});
  ASSERT_EQ(shape.dst_width, 3);
  EXPECT_THAT(MaxForward(shape, false, {-1, -2, -3, -4, -5}).dst,
              ElementsAre(-1, -2, -4));
  EXPECT_THAT(AverageForward(shape, {2, 4, 6, 8, 10}), ElementsAre(3, 6, 9));
  // Shares are 1/2, 1/3 and 1/2.
  EXPECT_THAT(AverageBackward(shape, {2, 3, 4}, 5), ElementsAre(1, 2, 1, 3, 2));
}

TEST_F(PoolKernelTest, AddsTheGradientsOfWindowsThatOverlap) {
  const PoolShape shape = Plane(1, 4, {1, 2, 1, 1, 0, 0, 0, 0});
  const MaxPooled pooled = MaxForward(shape, false, {0, 9, 1, 2});
  EXPECT_THAT(pooled.argmax, ElementsAre(1, 1, 3));
  EXPECT_THAT(MaxBackward(shape, pooled.argmax, {1, 10, 100}, 4),
              ElementsAre(0, 11, 0, 100));
  EXPECT_THAT(AverageBackward(shape, {2, 4, 6}, 4), ElementsAre(1, 3, 5, 3));
}

// Pixels that no window reaches: a stride beyond the kernel, a rest at the end.
TEST_F(PoolKernelTest, ClearsTheGradientWhereNoWindowIs) {
  const PoolShape shape = Plane(1, 6, {1, 1, 1, 2, 0, 0, 0, 0});
  ASSERT_EQ(shape.dst_width, 3);
  const MaxPooled pooled = MaxForward(shape, false, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(MaxBackward(shape, pooled.argmax, {7, 8, 9}, 6),
              ElementsAre(7, 0, 8, 0, 9, 0));
  EXPECT_THAT(AverageBackward(shape, {7, 8, 9}, 6),
              ElementsAre(7, 0, 8, 0, 9, 0));
}

// Two images of three channels: each channel is a plane of its own.
TEST_F(PoolKernelTest, TakesChannelsLast) {
  PoolShape shape = Plane(2, 1, {2, 1, 1, 1, 0, 0, 0, 0});
  shape.outer = 2;
  shape.inner = 3;
  const Floats src = {1, 5, 3, 4, 2, 6, 7, 0, 9, 8, 1, 0};
  const MaxPooled pooled = MaxForward(shape, false, src);
  EXPECT_THAT(pooled.dst, ElementsAre(4, 5, 6, 8, 1, 9));
  EXPECT_THAT(pooled.argmax, ElementsAre(1, 0, 1, 1, 1, 0));
  EXPECT_THAT(MaxBackward(shape, pooled.argmax, {1, 2, 3, 4, 5, 6}, 12),
              ElementsAre(0, 2, 0, 1, 0, 3, 0, 0, 6, 4, 5, 0));
  EXPECT_THAT(AverageForward(shape, src),
              ElementsAre(2.5, 3.5, 4.5, 7.5, 0.5, 4.5));
  EXPECT_THAT(AverageBackward(shape, {2, 4, 6, 8, 10, 12}, 12),
              ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
}

TEST_F(PoolKernelTest, MinusInfinityIsNoMaximum) {
  const PoolShape shape = Plane(1, 1, {});
  const MaxPooled pooled = MaxForward(shape, false, {-kInfinity});
  EXPECT_THAT(pooled.dst, ElementsAre(-kInfinity));
  EXPECT_THAT(pooled.argmax, ElementsAre(kNone));
}

TEST_F(PoolKernelTest, TakesMoreElementsThanTheGridHasThreads) {
  PoolShape shape = Plane(1, 1, {});
  shape.outer = kMostBlocks * kBlockThreads + 1;
  const Floats src(shape.outer, 2);
  const MaxPooled pooled = MaxForward(shape, true, src);
  EXPECT_EQ(pooled.dst, src);
  EXPECT_EQ(pooled.argmax, std::vector<int32_t>(shape.outer, 0));
  EXPECT_EQ(MaxBackward(shape, pooled.argmax, src, shape.outer), src);
  EXPECT_EQ(AverageForward(shape, src), src);
  EXPECT_EQ(AverageBackward(shape, src, shape.outer), src);
}

}  // namespace
}  // namespace muster
