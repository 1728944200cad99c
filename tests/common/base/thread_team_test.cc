#include "common/base/thread_team.h"

#include <vector>

#include "absl/synchronization/barrier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;

TEST(ThreadTeamTest, CallsTheBodyOnceForEachNumber) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (const int count : {0, 1, 2, 4, 100}) {
      std::vector<int> calls(count);
      team.Run(count, [&calls](int i) { ++calls[i]; });
      EXPECT_THAT(calls, Each(1)) << threads << " threads";
    }
  }
}

// Ends only if all are in it at the same time.
TEST(ThreadTeamTest, TheCallerAndTheOthersWorkAtTheSameTime) {
  constexpr int kThreads = 3;
  ThreadTeam team(kThreads);
  for (int round = 0; round < 100; ++round) {
    auto* const barrier = new absl::Barrier(kThreads);
    team.Run(kThreads, [barrier](int) {
      if (barrier->Block()) delete barrier;
    });
  }
}

TEST(ThreadTeamTest, WhatTheOthersWroteIsThereAfterARun) {
  ThreadTeam team(4);
  std::vector<int> sums(64);
  for (int round = 1; round <= 1000; ++round) {
    team.Run(static_cast<int>(sums.size()), [&sums](int i) { sums[i] += i; });
    ASSERT_EQ(sums[63], 63 * round);
  }
}

}  // namespace
}  // namespace muster
