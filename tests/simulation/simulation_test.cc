#include "tests/simulation/simulation.h"

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/read_file.h"
#include "gtest/gtest.h"
#include "tests/simulation/histories.h"
#include "tests/simulation/scenario.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

// `simulate --seeds=100000` runs more.
constexpr uint64_t kSeeds = 1000;
// One bug fails many seeds; a few are enough to read.
constexpr int kMostFailures = 3;

// The file that was saved when histories last changed on purpose.
constexpr char kHistories[] = "tests/simulation/histories.txt";

// A move, a merge or a rename changes no history. What is meant to change them
// makes the file anew:
//   bazel run //tests/simulation:simulate -- --histories
//       > tests/simulation/histories.txt
void ExpectSavedHistories(const Histories& histories) {
  const absl::StatusOr<std::string> saved = ReadFile(kHistories);
  ASSERT_THAT(saved, IsOk());
  const std::vector<std::string> wanted = absl::StrSplit(*saved, '\n');
  const std::vector<std::string> found = absl::StrSplit(histories.text(), '\n');
  ASSERT_EQ(wanted.size(), found.size());
  int shown = 0;
  for (size_t i = 0; i < wanted.size() && shown < kMostFailures; ++i) {
    EXPECT_EQ(wanted[i], found[i]);
    shown += wanted[i] != found[i];
  }
}

// Runs the seeds; returns how many broke a promise, and stops at a few.
int CountFailures(uint64_t first, uint64_t seeds, SimulationResult* sum,
                  Histories* histories) {
  int failures = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const SimulationResult result = Simulate(seed);
    sum->faults += result.faults;
    sum->restores += result.restores;
    sum->saves += result.saves;
    histories->Add(result);
    if (result.violation.empty()) continue;
    ADD_FAILURE() << "seed " << seed << ": " << result.violation
                  << "\n  replay: bazel run //tests/simulation:simulate -- "
                     "--seed="
                  << seed;
    if (++failures == kMostFailures) break;
  }
  std::cout << seeds << " seeds: " << sum->faults << " faults, "
            << sum->restores << " model epochs, " << sum->saves << " saves\n";
  return failures;
}

TEST(SimulationTest, KeepsEveryPromise) {
  Histories histories;
  SimulationResult sum;
  const int failures = CountFailures(1, kSeeds, &sum, &histories);
  // Else it would prove little.
  EXPECT_GT(sum.faults, 2 * kSeeds);
  EXPECT_GT(sum.restores, kSeeds + kSeeds / 10);
  EXPECT_GT(sum.saves, 2 * kSeeds);
  if (failures == 0) ExpectSavedHistories(histories);
}

// A process that dies takes a worker and a part of the parameters along.
TEST(SimulationTest, AllReduceKeepsEveryPromise) {
  constexpr uint64_t kAllReduceJobs = 300;
  Histories histories;
  SimulationResult sum;
  CountFailures(kAllReduceSeeds, kAllReduceJobs, &sum, &histories);
  EXPECT_GT(sum.faults, 2 * kAllReduceJobs);
  EXPECT_GT(sum.restores, 2 * kAllReduceJobs);
  EXPECT_GT(sum.saves, 2 * kAllReduceJobs);
}

// Each job keeps the promises of one that is alone, whatever happens to the
// other one's tasks.
TEST(SimulationTest, TwoJobsOnThePsTasksKeepEveryPromise) {
  constexpr uint64_t kPairs = 300;
  Histories histories;
  SimulationResult sum;
  CountFailures(kTwoJobSeeds, kPairs, &sum, &histories);
  EXPECT_GT(sum.faults, 4 * kPairs);
  EXPECT_GT(sum.restores, 2 * kPairs + kPairs / 2);
  EXPECT_GT(sum.saves, 4 * kPairs);
}

// Longer: each push has a block or several for every ps task.
TEST(SimulationTest, KeepsEveryPromiseOfACutTensor) {
  constexpr uint64_t kCutSeeds = 60;
  int failures = 0;
  SimulationResult sum;
  for (uint64_t seed = 1; seed <= kCutSeeds && failures < kMostFailures;
       ++seed) {
    const SimulationResult result = Simulate(seed, Bug::kNone, Tensors::kCut);
    sum.restores += result.restores;
    sum.saves += result.saves;
    if (result.violation.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << ": " << result.violation
                  << "\n  replay: bazel run //tests/simulation:simulate -- "
                     "--cut --seed="
                  << seed;
  }
  EXPECT_GT(sum.restores, kCutSeeds + kCutSeeds / 10);
  EXPECT_GT(sum.saves, 2 * kCutSeeds);
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
