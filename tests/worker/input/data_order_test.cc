#include "worker/input/data_order.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;

constexpr uint64_t kSeed = 7;

// A run must read the same examples on every machine and in every version.
TEST(EpochPermutationTest, IsThisOne) {
  EXPECT_THAT(EpochPermutation(8, kSeed, 0, /*shuffle=*/true),
              ElementsAre(2, 0, 7, 1, 4, 5, 6, 3));
}

TEST(EpochPermutationTest, HoldsEveryIndexOnce) {
  for (const int64_t n : {0, 1, 2, 1000}) {
    std::vector<int64_t> permutation =
        EpochPermutation(n, kSeed, 3, /*shuffle=*/true);
    std::sort(permutation.begin(), permutation.end());
    EXPECT_EQ(permutation, EpochPermutation(n, kSeed, 3, /*shuffle=*/false));
  }
}

TEST(EpochPermutationTest, DependsOnSeedAndEpoch) {
  const auto first = EpochPermutation(1000, kSeed, 0, /*shuffle=*/true);
  EXPECT_EQ(EpochPermutation(1000, kSeed, 0, /*shuffle=*/true), first);
  EXPECT_NE(EpochPermutation(1000, kSeed, 1, /*shuffle=*/true), first);
  EXPECT_NE(EpochPermutation(1000, kSeed + 1, 0, /*shuffle=*/true), first);
}

TEST(EpochPermutationTest, PutsEachIndexAnywhere) {
  // Where index 0 lands in 6000 epochs of 6: binomial, standard deviation 29.
  constexpr int kEpochs = 6000;
  constexpr int kFiveDeviations = 145;
  std::vector<int> counts(6);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto permutation =
        EpochPermutation(6, kSeed, epoch, /*shuffle=*/true);
    ++counts[std::find(permutation.begin(), permutation.end(), 0) -
             permutation.begin()];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, kFiveDeviations);
}

TEST(DataOrderTest, KeepsTheOrdersOfTwoEpochs) {
  DataOrder order(1000, kSeed, /*shuffle=*/true);
  const auto wanted = [](int64_t epoch) {
    return EpochPermutation(1000, kSeed, epoch, /*shuffle=*/true);
  };
  const absl::Span<const int64_t> first = order.Epoch(4);
  const absl::Span<const int64_t> second = order.Epoch(5);
  EXPECT_EQ(first, wanted(4));
  EXPECT_EQ(second, wanted(5));
  EXPECT_EQ(order.Epoch(4).data(), first.data());
  EXPECT_EQ(order.Epoch(4), wanted(4));
  // In the place of the one that was asked for before the other.
  EXPECT_EQ(order.Epoch(6), wanted(6));
  EXPECT_EQ(order.Epoch(4).data(), first.data());
  EXPECT_EQ(order.Epoch(5), wanted(5));
  EXPECT_EQ(order.Epoch(4).data(), first.data());
  EXPECT_EQ(order.Epoch(4), wanted(4));
}

}  // namespace
}  // namespace muster
