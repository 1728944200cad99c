#include "worker/backend/dropout_mask.h"

#include <cmath>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr uint64_t kSeed = 7;
constexpr int64_t kElements = 100000;

int64_t Kept(const DropoutMask& mask) {
  int64_t kept = 0;
  for (int64_t i = 0; i < kElements; ++i) kept += mask.Keeps(i) ? 1 : 0;
  return kept;
}

TEST(DropoutMaskTest, KeepsTheRightFraction) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    // Five standard deviations of the binomial distribution.
    const double tolerance = 5 * std::sqrt(kElements * rate * (1 - rate));
    EXPECT_NEAR(Kept(DropoutMask(rate, kSeed)), kElements * (1 - rate),
                tolerance);
  }
}

TEST(DropoutMaskTest, RateZeroKeepsAll) {
  EXPECT_EQ(Kept(DropoutMask(0, kSeed)), kElements);
}

TEST(DropoutMaskTest, DependsOnSeedAndIndexAlone) {
  const DropoutMask a(0.5, kSeed), same(0.5, kSeed), other(0.5, kSeed + 1);
  int64_t differences = 0;
  for (int64_t i = kElements - 1; i >= 0; --i) {
    ASSERT_EQ(a.Keeps(i), same.Keeps(i));
    differences += a.Keeps(i) != other.Keeps(i) ? 1 : 0;
  }
  // Neighbouring seeds draw independent masks.
  EXPECT_NEAR(differences, kElements / 2, 5 * std::sqrt(kElements / 4.0));
}

}  // namespace
}  // namespace muster
