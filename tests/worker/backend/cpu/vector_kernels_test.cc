#include "worker/backend/cpu/vector_kernels.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

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
    std::vector<float> dst = src, diff_src(n), wanted(n), wanted_diff(n);
    for (int64_t i = 0; i < n; ++i) {
      wanted[i] = src[i] > 0 ? src[i] : 0;
      wanted_diff[i] = src[i] > 0 ? diff[i] : 0;
    }
    ReluInPlace(dst.data(), n);
    ReluBackward(dst.data(), diff.data(), diff_src.data(), n);
    EXPECT_EQ(dst, wanted);
    EXPECT_EQ(diff_src, wanted_diff);
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
