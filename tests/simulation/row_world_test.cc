// Rows of a table through kills, repeats, snapshots and evictions, to the bit.
#include "tests/simulation/row_world.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int kEvents = 400;

uint64_t Seeds() {
  return std::getenv("MUSTER_SOAK") == nullptr ? 1000 : 100000;
}

TEST(RowWorldTest, EveryRow_HasExactlyWhatWasPushedToIt) {
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    const std::string wrong = RowWorld(seed, RowBug::kNone).Run(kEvents);
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

class RowBugTest : public testing::TestWithParam<RowBug> {};

TEST_P(RowBugTest, PlantedFault_IsFound) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    if (!RowWorld(seed, GetParam()).Run(kEvents).empty()) {
      std::printf("found by seed %d\n", static_cast<int>(seed));
      return;
    }
  }
  FAIL() << "not found in 200 seeds";
}

INSTANTIATE_TEST_SUITE_P(
    All, RowBugTest,
    testing::Values(RowBug::kPullCreates, RowBug::kMeanOverWhoTouched,
                    RowBug::kRowTwiceInAStep, RowBug::kEvictedRowIsNotSaved,
                    RowBug::kCountOfTheTable, RowBug::kRowIsLostOnItsMove));

}  // namespace
}  // namespace muster
