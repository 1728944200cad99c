#include "common/base/split_mix64.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

// The first numbers of java.util.SplittableRandom(1234567), as in the
// reference implementation of Vigna (https://prng.di.unimi.it/splitmix64.c).
TEST(SplitMix64Test, EqualsTheReferenceImplementation) {
  constexpr uint64_t kSeed = 1234567;
  EXPECT_EQ(SplitMix64(kSeed + kSplitMix64Step), 6457827717110365317u);
  EXPECT_EQ(SplitMix64(kSeed + 2 * kSplitMix64Step), 3203168211198807973u);
  EXPECT_EQ(SplitMix64(kSeed + 3 * kSplitMix64Step), 9817491932198370423u);
}

}  // namespace
}  // namespace muster
