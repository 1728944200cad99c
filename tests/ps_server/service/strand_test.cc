#include "ps_server/service/strand.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(StrandTest, RunsATaskBeforePostReturns) {
  Strand strand(SystemClock());
  std::thread::id ran_on;
  ASSERT_TRUE(strand.Post([&] { ran_on = std::this_thread::get_id(); }));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(StrandTest, WhatATaskPostsRunsAfterIt) {
  Strand strand(SystemClock());
  std::vector<int> ran;
  ASSERT_TRUE(strand.Post([&] {
    EXPECT_TRUE(strand.Post([&] { ran.push_back(2); }));
    ran.push_back(1);
  }));
  EXPECT_EQ(ran, std::vector<int>({1, 2}));
}

TEST(StrandTest, TakesPostsFromManyThreadsAndRunsOneAtATime) {
  int sum = 0;  // no lock: one task runs at a time
  Strand strand(SystemClock());
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

TEST(StrandTest, WhoPostsWhileAnotherRunsDoesNotWait) {
  Strand strand(SystemClock());
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

// Others never let the queue become empty, before the thread has had its say.
TEST(StrandTest, AThreadThatRunsOthersTasksSeesToItsOwnDuties) {
  Strand strand(SystemClock());
  Strand other(SystemClock());
  int yielded = 0;
  int runs = 0;
  const std::function<void()> hook = [&] {
    ++yielded;
    EXPECT_TRUE(other.Post([] {}));
  };
  std::function<void()> again = [&] {
    if (++runs == 100 || yielded == 3) return;
    EXPECT_TRUE(strand.Post(again));
  };
  {
    const Strand::YieldHook yield_hook(&strand, &hook);
    EXPECT_TRUE(strand.Post(again));
    EXPECT_EQ(runs, 4);
    EXPECT_EQ(yielded, 4);
    // Who posts has nothing to see to while another thread runs it.
    std::thread runner([&] { EXPECT_TRUE(strand.Post([] {})); });
    runner.join();
    EXPECT_EQ(yielded, 4);
  }
  EXPECT_TRUE(strand.Post([] {}));
  EXPECT_EQ(yielded, 4);
}

TEST(StrandTest, RefusesAfterCloseAndClosesTwice) {
  Strand strand(SystemClock());
  strand.Close();
  strand.Close();
  EXPECT_FALSE(strand.Post([] { FAIL(); }));
}

TEST(StrandTest, CloseWaitsForWhatRuns) {
  Strand strand(SystemClock());
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
  Strand strand(SystemClock());
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  ASSERT_TRUE(strand.Post([&, held = std::move(held)] {
    EXPECT_TRUE(strand.Post([&] { EXPECT_TRUE(watch.expired()); }));
  }));
}

absl::Duration NothingToDo() { return absl::InfiniteDuration(); }

TEST(StrandWithThreadTest, RunsTasksInTheOrderOfPosting) {
  std::vector<int> ran;
  Strand strand(SystemClock(), NothingToDo);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(strand.Post([&ran, i] { ran.push_back(i); }));
  }
  strand.Close();
  ASSERT_EQ(ran.size(), 1000);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[i], i);
}

TEST(StrandWithThreadTest, RunsNothingOnThePostersThread) {
  Strand strand(SystemClock(), NothingToDo);
  std::thread::id ran_on;
  ASSERT_TRUE(strand.Post([&] { ran_on = std::this_thread::get_id(); }));
  strand.Close();
  EXPECT_NE(ran_on, std::thread::id());
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(StrandWithThreadTest, TakesPostsFromManyThreads) {
  int sum = 0;  // no lock: the strand's thread alone adds
  Strand strand(SystemClock(), NothingToDo);
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

TEST(StrandWithThreadTest, RefusesAfterCloseAndClosesTwice) {
  Strand strand(SystemClock(), NothingToDo);
  strand.Close();
  strand.Close();
  EXPECT_FALSE(strand.Post([] { FAIL(); }));
}

TEST(StrandWithThreadTest, CallsIdleAfterTasksAndWhenItsTimeHasPassed) {
  std::atomic<int> calls{0};
  absl::Notification third;
  Strand strand(SystemClock(), [&] {
    if (++calls == 3) third.Notify();
    return absl::Milliseconds(1);
  });
  third.WaitForNotification();
}

}  // namespace
}  // namespace muster
