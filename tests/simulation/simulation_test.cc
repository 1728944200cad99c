#include "tests/simulation/simulation.h"

#include <cstdint>
#include <iostream>

#include "gtest/gtest.h"

namespace muster {
namespace {

// `simulate --seeds=100000` runs more.
constexpr uint64_t kSeeds = 1000;
// One bug fails many seeds; a few are enough to read.
constexpr int kMostFailures = 3;

TEST(SimulationTest, KeepsEveryPromise) {
  int failures = 0;
  SimulationResult sum;
  for (uint64_t seed = 1; seed <= kSeeds && failures < kMostFailures; ++seed) {
    const SimulationResult result = Simulate(seed);
    sum.faults += result.faults;
    sum.restores += result.restores;
    sum.saves += result.saves;
    if (result.violation.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << result.violation
                  << "\n  replay: bazel run //tests/simulation:simulate -- "
                     "--seed="
                  << seed;
  }
  std::cout << kSeeds << " seeds: " << sum.faults << " faults, " << sum.restores
            << " model epochs, " << sum.saves << " saves\n";
  // Else it would prove little.
  EXPECT_GT(sum.faults, 2 * kSeeds);
  EXPECT_GT(sum.restores, kSeeds + kSeeds / 10);
  EXPECT_GT(sum.saves, 2 * kSeeds);
}

TEST(SimulationTest, OneSeedIsOneHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const SimulationResult first = Simulate(seed);
    const SimulationResult second = Simulate(seed);
    EXPECT_EQ(first.history, second.history) << "seed " << seed;
    EXPECT_EQ(first.virtual_time, second.virtual_time) << "seed " << seed;
    EXPECT_NE(first.history, Simulate(seed + 1).history) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster
