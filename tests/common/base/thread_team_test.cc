#include "common/base/thread_team.h"

#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;

using Wait = ThreadTeam::Wait;

class ThreadTeamTest : public testing::TestWithParam<Wait> {};

TEST_P(ThreadTeamTest, CallsTheBodyOnceForEachNumber) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads, GetParam());
    EXPECT_EQ(team.threads(), threads);
    for (const int count : {0, 1, 2, 4, 100}) {
      std::vector<int> calls(count);
      team.Run(count, [&calls](int i) { ++calls[i]; });
      EXPECT_THAT(calls, Each(1)) << threads << " threads";
    }
  }
}

// Ends only if all are in it at the same time.
TEST_P(ThreadTeamTest, TheCallerAndTheOthersWorkAtTheSameTime) {
  constexpr int kThreads = 3;
  ThreadTeam team(kThreads, GetParam());
  for (int round = 0; round < 100; ++round) {
    auto* const barrier = new absl::Barrier(kThreads);
    team.Run(kThreads, [barrier](int) {
      if (barrier->Block()) delete barrier;
    });
  }
}

TEST_P(ThreadTeamTest, WhatTheOthersWroteIsThereAfterARun) {
  ThreadTeam team(4, GetParam());
  std::vector<int> sums(64);
  for (int round = 1; round <= 1000; ++round) {
    team.Run(static_cast<int>(sums.size()), [&sums](int i) { sums[i] += i; });
    ASSERT_EQ(sums[63], 63 * round);
  }
}

// The helper is kept in its call, as if it had lost its core.
TEST_P(ThreadTeamTest, TheCallerMakesTheCallsThatNoOtherHasBegun) {
  ThreadTeam team(2, GetParam());
  absl::Notification helper_is_in, caller_is_through;
  const std::thread::id caller = std::this_thread::get_id();
  int calls = 0;
  team.Run(10, [&](int) {
    if (std::this_thread::get_id() != caller) {
      helper_is_in.Notify();
      caller_is_through.WaitForNotification();
      return;
    }
    helper_is_in.WaitForNotification();
    if (++calls == 9) caller_is_through.Notify();
  });
  EXPECT_EQ(calls, 9);
}

INSTANTIATE_TEST_SUITE_P(Waits, ThreadTeamTest,
                         testing::Values(Wait::kAsleep, Wait::kSpinningFirst));

}  // namespace
}  // namespace muster
