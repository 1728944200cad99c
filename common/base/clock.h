#ifndef COMMON_BASE_CLOCK_H_
#define COMMON_BASE_CLOCK_H_

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// A thread that a Clock has started; joined at destruction.
class ClockThread {
 public:
  virtual ~ClockThread() = default;
};

// Where "now" comes from. Every duration is measured on the monotonic clock,
// so that setting the wall clock fires no timeout. Implementations are
// thread-safe. tests/testing/fake_clock.h is the one for tests.
//
// Shells wait and start threads through it, too: virtual time
// (tests/simulation) passes only while every thread waits, so its clock has to
// know both.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic; comparable only with other values of this clock.
  virtual absl::Time Now() const = 0;

  // Waits with `mu` held until `condition` holds or `timeout` has passed;
  // returns whether it holds. As absl::Mutex::AwaitWithTimeout.
  virtual bool Await(absl::Mutex* mu, const absl::Condition& condition,
                     absl::Duration timeout) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Runs `body` on a thread of its own.
  virtual std::unique_ptr<ClockThread> StartThread(
      std::function<void()> body) const;
};

// CLOCK_MONOTONIC without the time in which the process stood still
// (AwakeTime).
class MonotonicClock : public Clock {
 public:
  absl::Time Now() const override;
};

// A MonotonicClock that is always there.
const Clock* SystemClock();

}  // namespace muster

#endif  // COMMON_BASE_CLOCK_H_
