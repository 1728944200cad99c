#include "worker/backend/cpu/part_barrier.h"

#include <atomic>
#include <chrono>
#include <vector>

#include "common/base/spin_until.h"
#include "common/base/thread_team.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(PartBarrierTest, NobodyPassesBeforeAllHaveArrived) {
  constexpr int kRounds = 200;
  for (const int parts : {1, 2, 5}) {
    ThreadTeam team(parts);
    PartBarrier barrier(parts);
    std::vector<std::atomic<int>> arrived(kRounds);
    team.Run(parts, [&](int) {
      for (std::atomic<int>& of_round : arrived) {
        ++of_round;
        barrier.Await();
        EXPECT_EQ(of_round, parts);
      }
    });
  }
}

// The first to arrive has given up spinning by then, and must be woken.
TEST(PartBarrierTest, WakesThoseThatSleep) {
  ThreadTeam team(2);
  PartBarrier barrier(2);
  team.Run(2, [&](int part) {
    if (part == 0) {
      const auto end = std::chrono::steady_clock::now() + 100 * kSpin;
      while (std::chrono::steady_clock::now() < end) continue;
    }
    barrier.Await();
  });
}

}  // namespace
}  // namespace muster
