#include "ps_server/strand.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace muster {
namespace {

TEST(StrandTest, RunsATaskBeforePostReturns) {
  const MonotonicClock clock{};
  Strand strand(&clock);
  std::thread::id ran_on;
  ASSERT_TRUE(strand.Post([&] { ran_on = std::this_thread::get_id(); }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(StrandTest, WhatATaskPostsRunsAfterIt) {
  const MonotonicClock clock{};
  Strand strand(&clock);
  std::vector<int> ran;
  ASSERT_TRUE(strand.Post([&] {
    EXPECT_TRUE(strand.Post([&] { ran.push_back(2); }));
    ran.push_back(1);
  }));
  EXPECT_EQ(ran, std::vector<int>({1, 2}));
}

TEST(StrandTest, TakesPostsFromManyThreadsAndRunsOneAtATime) {
  const MonotonicClock clock{};
  int sum = 0;  // no lock: one task runs at a time
  Strand strand(&clock);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        EXPECT_TRUE(strand.Post([&sum] { ++sum; }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  strand.Close();
  EXPECT_EQ(sum, 2000);
}

// Each reading is a turn later, so that every turn is over when it has begun.
class LeapingClock : public FakeClock {
 public:
  absl::Time Now() const override {
    leaps_.Advance(Strand::kTurn);
    return leaps_.Now();
  }

 private:
  mutable FakeClock leaps_;
};

TEST(StrandTest, RunsOneAtATimeInOrderWhenEveryTurnIsOver) {
  const LeapingClock clock;
  // No lock: one task runs at a time.
  std::vector<int> last(4, 0);
  Strand strand(&clock);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 500; ++i) {
        EXPECT_TRUE(strand.Post([&last, t, i] {
          EXPECT_EQ(last[t], i - 1);
          last[t] = i;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  strand.Close();
  EXPECT_EQ(last, std::vector<int>(4, 500));
}

// Others never let the queue become empty.
TEST(StrandTest, WhoHasRunForATurnIsRelievedByTheNextToPost) {
  constexpr int64_t kNever = 100'000'000;
  FakeClock clock;
  Strand strand(&clock);
  absl::Notification begun;
  std::atomic<bool> relieved = false;
  int64_t runs = 0;
  std::function<void()> again = [&] {
    if (relieved || runs == kNever) return;
    if (++runs == 1) begun.Notify();
    EXPECT_TRUE(strand.Post(again));
  };
  std::thread busy([&] {
    EXPECT_TRUE(strand.Post(again));
    relieved = true;
  });
  begun.WaitForNotification();
  clock.Advance(Strand::kTurn);
  EXPECT_TRUE(strand.Post([] {}));
  busy.join();
  strand.Close();
  EXPECT_LT(runs, kNever);
}

TEST(StrandTest, WhoPostsWhileAnotherRunsDoesNotWait) {
  const MonotonicClock clock{};
  Strand strand(&clock);
  absl::Notification begun, go_on;
  bool second = false;
  std::thread runner([&] {
    EXPECT_TRUE(strand.Post([&] {
      begun.Notify();
      go_on.WaitForNotification();
    }));
  });
  begun.WaitForNotification();
  EXPECT_TRUE(strand.Post([&second] { second = true; }));
  EXPECT_FALSE(second);
  go_on.Notify();
  runner.join();
  EXPECT_TRUE(second);
}

TEST(StrandTest, RefusesAfterCloseAndClosesTwice) {
  const MonotonicClock clock{};
  Strand strand(&clock);
  strand.Close();
  strand.Close();
  EXPECT_FALSE(strand.Post([] { FAIL(); }));
}

TEST(StrandTest, CloseWaitsForWhatRuns) {
  const MonotonicClock clock{};
  Strand strand(&clock);
  absl::Notification begun, go_on;
  bool ended = false;
  std::thread runner([&] {
    EXPECT_TRUE(strand.Post([&] {
      begun.Notify();
      go_on.WaitForNotification();
      ended = true;
    }));
  });
  begun.WaitForNotification();
  std::thread helper([&] { go_on.Notify(); });
  strand.Close();
  EXPECT_TRUE(ended);
  helper.join();
  runner.join();
}

TEST(StrandTest, FreesATaskBeforeTheNextRuns) {
  const MonotonicClock clock{};
  Strand strand(&clock);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  ASSERT_TRUE(strand.Post([&, held = std::move(held)] {
    EXPECT_TRUE(strand.Post([&] { EXPECT_TRUE(watch.expired()); }));
  }));
}

}  // namespace
}  // namespace muster
