#include "worker/backend/cpu/vector_kernels.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::NanSensitiveFloatEq;
using ::testing::Pointwise;

// Around the widest vector's 16 lanes, and 0.
constexpr int64_t kSizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 33};

// Small integers of both signs, exact in every sum below.
std::vector<float> Ramp(int64_t n, int start) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<float>((i * 5 + start) % 11 - 5);
  }
  return values;
}

TEST(VectorKernelsTest, AddVectors) {
  for (const int64_t n : kSizes) {
    std::vector<float> a = Ramp(n, 0), wanted = a;
    const std::vector<float> b = Ramp(n, 3);
    for (int64_t i = 0; i < n; ++i) wanted[i] += b[i];
    AddVectors(a.data(), b.data(), a.data(), n);
    EXPECT_EQ(a, wanted);
  }
}

TEST(VectorKernelsTest, ReluForwardAndBackward) {
  for (const int64_t n : kSizes) {
    const std::vector<float> src = Ramp(n, 0), diff = Ramp(n, 3);
    std::vector<float> dst(n), diff_src(n), wanted(n), wanted_diff(n);
    for (int64_t i = 0; i < n; ++i) {
      wanted[i] = src[i] > 0 ? src[i] : 0;
      wanted_diff[i] = src[i] > 0 ? diff[i] : 0;
    }
    ReluForward(src.data(), dst.data(), n);
    ReluBackward(dst.data(), diff.data(), diff_src.data(), n);
    EXPECT_EQ(dst, wanted);
    EXPECT_EQ(diff_src, wanted_diff);
  }
}

// NaN, infinities and zeros of both signs, in every lane and in the tail; the
// first element is left out, so that nothing is aligned.
std::vector<float> Specials(int64_t n, int start) {
  constexpr float kSpecials[] = {NAN, 2, HUGE_VALF, -0.0f, -HUGE_VALF, 0, -2};
  std::vector<float> values(n + 1);
  for (int64_t i = 0; i <= n; ++i) values[i] = kSpecials[(i + start) % 7];
  return values;
}

TEST(VectorKernelsTest, ReluKeepsNanAndInfinity) {
  for (const int64_t n : kSizes) {
    for (int start = 0; start < 7; ++start) {
      const std::vector<float> src = Specials(n, start);
      std::vector<float> dst = src, wanted = src;
      for (int64_t i = 1; i <= n; ++i) {
        if (src[i] <= 0) wanted[i] = 0;
      }
      ReluForward(dst.data() + 1, dst.data() + 1, n);
      EXPECT_THAT(dst, Pointwise(NanSensitiveFloatEq(), wanted));
      for (int64_t i = 1; i <= n; ++i) {
        EXPECT_TRUE(dst[i] != 0 || !std::signbit(dst[i])) << src[i];
      }
    }
  }
}

TEST(VectorKernelsTest, OthersKeepNanAndInfinity) {
  for (const int64_t n : kSizes) {
    const std::vector<float> a = Specials(n, 0), b = Specials(n, 3);
    const std::vector<uint8_t> mask(n, 1);
    std::vector<float> sum = a, scaled = a, added = a, diff = a;
    std::vector<float> wanted_sum = a, wanted_scaled = a, wanted_added = a;
    std::vector<float> wanted_diff = a;
    for (int64_t i = 1; i <= n; ++i) {
      wanted_sum[i] = a[i] + b[i];
      wanted_scaled[i] = 4 * b[i];
      wanted_added[i] = a[i] + 2 * b[i];
      wanted_diff[i] = b[i] > 0 ? a[i] : 0;
    }
    AddVectors(a.data() + 1, b.data() + 1, sum.data() + 1, n);
    ScaleMasked(b.data() + 1, mask.data(), 4, scaled.data() + 1, n);
    AddScaled(b.data() + 1, 2, added.data() + 1, n);
    ReluBackward(b.data() + 1, a.data() + 1, diff.data() + 1, n);
    EXPECT_THAT(sum, Pointwise(NanSensitiveFloatEq(), wanted_sum));
    EXPECT_THAT(scaled, Pointwise(NanSensitiveFloatEq(), wanted_scaled));
    EXPECT_THAT(added, Pointwise(NanSensitiveFloatEq(), wanted_added));
    EXPECT_THAT(diff, Pointwise(NanSensitiveFloatEq(), wanted_diff));
    EXPECT_EQ(std::isnan(SumOfSquares(a.data() + 1, n)), n >= 7);
  }
}

TEST(VectorKernelsTest, ScaleMasked) {
  for (const int64_t n : kSizes) {
    const std::vector<float> src = Ramp(n, 0);
    std::vector<uint8_t> mask(n);
    std::vector<float> dst(n), wanted(n);
    for (int64_t i = 0; i < n; ++i) {
      mask[i] = i % 3 == 0 ? 1 : 0;
      wanted[i] = mask[i] ? src[i] * 4 : 0;
    }
    ScaleMasked(src.data(), mask.data(), 4, dst.data(), n);
    EXPECT_EQ(dst, wanted);
  }
}

TEST(VectorKernelsTest, AddScaledAndSumOfSquares) {
  for (const int64_t n : kSizes) {
    const std::vector<float> x = Ramp(n, 0);
    std::vector<float> y = Ramp(n, 3), wanted = y;
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      wanted[i] += 2 * x[i];
      squares += x[i] * x[i];
    }
    AddScaled(x.data(), 2, y.data(), n);
    EXPECT_EQ(y, wanted);
    EXPECT_EQ(SumOfSquares(x.data(), n), squares);
  }
}

}  // namespace
}  // namespace muster
