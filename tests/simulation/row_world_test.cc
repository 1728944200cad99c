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

uint64_t Seeds() { return std::getenv("MUSTER_SOAK") == nullptr ? 300 : 30000; }

TEST(RowWorldTest, EveryRow_HasExactlyWhatWasPushedToIt) {
  RowWorld::Seen all;
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    RowWorld world(seed, RowBug::kNone);
    ASSERT_EQ(world.Run(kEvents), "") << "seed " << seed;
    all.saves += world.seen().saves;
    all.crashes += world.seen().crashes;
    all.repeats += world.seen().repeats;
    all.late += world.seen().late;
    all.evictions += world.seen().evictions;
    all.evictions_in_snapshots += world.seen().evictions_in_snapshots;
  }
  for (const int64_t times : {all.saves, all.crashes, all.repeats, all.late,
                              all.evictions, all.evictions_in_snapshots}) {
    std::printf("%d ", static_cast<int>(times));
    EXPECT_GT(times, 100);
  }
  std::printf(
      "saves, crashes, repeats, late parts, evictions, of them in "
      "snapshots\n");
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
