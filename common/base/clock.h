#ifndef COMMON_BASE_CLOCK_H_
#define COMMON_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace muster {

// Where "now" comes from. Every duration is measured on the monotonic clock,
// so that setting the wall clock fires no timeout. Implementations are
// thread-safe. tests/testing/fake_clock.h is the one for tests.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic; comparable only with other values of this clock.
  virtual absl::Time Now() const = 0;
};

// CLOCK_MONOTONIC.
class MonotonicClock : public Clock {
 public:
  absl::Time Now() const override;
};

}  // namespace muster

#endif  // COMMON_BASE_CLOCK_H_
