#ifndef COMMON_BASE_MONOTONIC_WAIT_H_
#define COMMON_BASE_MONOTONIC_WAIT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// CLOCK_MONOTONIC's time without that in which this process stood still
// (SIGSTOP, a paused container): what came meanwhile has not been read, so
// nobody is late by it. A beat that is overdue by more than kLongestGap shows
// it; until the next one the time stands. Thread-safe; one thread beats.
class AwakeTime {
 public:
  static constexpr absl::Duration kBeat = absl::Milliseconds(250);
  static constexpr absl::Duration kLongestGap = absl::Seconds(1);

  // `now` is CLOCK_MONOTONIC's. Never goes back.
  absl::Duration At(absl::Duration now) const {
    // In this order: an older end with a newer gap only makes the time stand.
    const int64_t end = end_ns_.load(std::memory_order_acquire);
    return absl::Nanoseconds(
        std::min(end, absl::ToInt64Nanoseconds(now) - gaps_ns_.load()));
  }
  void Beat(absl::Duration now);
  // All that it has left out.
  absl::Duration gaps() const { return absl::Nanoseconds(gaps_ns_.load()); }

 private:
  std::atomic<int64_t> gaps_ns_{0};
  // Where the time stands without another beat.
  std::atomic<int64_t> end_ns_{std::numeric_limits<int64_t>::max()};
};

// The process's own, whose thread beats to its end.
const AwakeTime& OwnAwakeTime();
// The time of OwnAwakeTime() since the machine's start.
absl::Duration AwakeNow();

// Waits with `mu` held until `condition` holds or `timeout` has passed on
// OwnAwakeTime(); returns whether it holds. As absl::Mutex::AwaitWithTimeout,
// which in Abseil 20220623 waits on the wall clock: set back by an hour, every
// wait would take an hour longer. May be a millisecond late while others hold
// `mu`.
bool AwaitMonotonic(absl::Mutex* mu, const absl::Condition& condition,
                    absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

}  // namespace muster

#endif  // COMMON_BASE_MONOTONIC_WAIT_H_
