#include "common/base/clock.h"

#include <memory>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace muster {
namespace {

TEST(MonotonicClockTest, NeverGoesBack) {
  const MonotonicClock clock{};
  absl::Time last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = clock.Now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(MonotonicClockTest, WaitsForAThread) {
  const MonotonicClock clock{};
  absl::Mutex mu;
  bool done = false;
  const std::unique_ptr<ClockThread> thread = clock.StartThread([&] {
    absl::MutexLock lock(&mu);
    done = true;
  });
  absl::MutexLock lock(&mu);
  EXPECT_TRUE(
      clock.Await(&mu, absl::Condition(&done), absl::InfiniteDuration()));
}

TEST(MonotonicClockTest, GivesUpAfterTheTimeout) {
  const MonotonicClock clock{};
  absl::Mutex mu;
  const bool never = false;
  const absl::Time start = clock.Now();
  absl::MutexLock lock(&mu);
  EXPECT_FALSE(
      clock.Await(&mu, absl::Condition(&never), absl::Milliseconds(1)));
  EXPECT_GE(clock.Now() - start, absl::Milliseconds(1));
}

TEST(FakeClockTest, MovesOnlyWhenTold) {
  FakeClock clock;
  const absl::Time start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now() - start, absl::Seconds(3));
}

}  // namespace
}  // namespace muster
