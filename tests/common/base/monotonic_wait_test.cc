#include "common/base/monotonic_wait.h"

#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(2);
constexpr absl::Duration kLong = absl::Minutes(5);

TEST(AwakeTimeTest, LeavesOutWhatNoBeatCameIn) {
  constexpr absl::Duration kDay = absl::Hours(24);
  AwakeTime time;
  time.Beat(kDay);
  const absl::Duration end = kDay + AwakeTime::kLongestGap;
  EXPECT_EQ(time.At(kDay + AwakeTime::kBeat), kDay + AwakeTime::kBeat);
  // Whoever asks before the thread that beats gets the time of the stop.
  EXPECT_EQ(time.At(kDay + absl::Seconds(70)), end);
  time.Beat(kDay + absl::Seconds(70));
  EXPECT_EQ(time.At(kDay + absl::Seconds(70)), end);
  EXPECT_EQ(time.At(kDay + absl::Seconds(70) + kShort), end + kShort);
  EXPECT_EQ(time.gaps(), absl::Seconds(70) - AwakeTime::kLongestGap);
  // Beats in time leave nothing out.
  time.Beat(kDay + absl::Seconds(71));
  EXPECT_EQ(time.At(kDay + absl::Seconds(71)), end + absl::Seconds(1));
}

TEST(MonotonicWaitTest, AConditionThatHoldsEndsItAtOnce) {
  absl::Mutex mu;
  const bool always = true;
  absl::MutexLock lock(&mu);
  EXPECT_TRUE(AwaitMonotonic(&mu, absl::Condition(&always), kLong));
  EXPECT_TRUE(
      AwaitMonotonic(&mu, absl::Condition(&always), absl::ZeroDuration()));
}

TEST(MonotonicWaitTest, TheTimeoutEndsItAndNotBefore) {
  absl::Mutex mu;
  const bool never = false;
  absl::MutexLock lock(&mu);
  for (const absl::Duration timeout :
       {-kShort, absl::ZeroDuration(), kShort, 3 * kShort}) {
    const absl::Time start = SystemClock()->Now();
    EXPECT_FALSE(AwaitMonotonic(&mu, absl::Condition(&never), timeout));
    EXPECT_GE(SystemClock()->Now() - start, timeout);
  }
}

// The timer of a long wait must not keep a short one that comes later.
TEST(MonotonicWaitTest, AShortWaitBesideALongOneEndsFirst) {
  absl::Mutex mu;
  bool done = false;
  std::thread other([&] {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(AwaitMonotonic(&mu, absl::Condition(&done), kLong));
  });
  {
    absl::MutexLock lock(&mu);
    const bool never = false;
    EXPECT_FALSE(AwaitMonotonic(&mu, absl::Condition(&never), kShort));
    done = true;
  }
  other.join();
}

// Timeouts, changes of the condition and a mutex that is hardly ever free, all
// at once: nobody is forgotten.
TEST(MonotonicWaitTest, ManyThreadsOnOneMutex) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 200;
  absl::Mutex mu;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const auto is_mine = [&] { return turn % kThreads == i; };
        absl::MutexLock lock(&mu);
        while (!AwaitMonotonic(&mu, absl::Condition(&is_mine),
                               absl::Microseconds(50))) {
        }
        ++turn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turn, kThreads * kRounds);
}

}  // namespace
}  // namespace muster
