#ifndef TESTS_TESTING_TICKING_CLOCK_H_
#define TESTS_TESTING_TICKING_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// A clock that goes on by `tick` with each look at it. Thread-safe.
class TickingClock : public MonotonicClock {
 public:
  explicit TickingClock(absl::Duration tick) : tick_(tick) {}

  absl::Time Now() const override {
    return absl::UnixEpoch() + ++looks_ * tick_;
  }

 private:
  const absl::Duration tick_;
  mutable std::atomic<int64_t> looks_{0};
};

}  // namespace muster

#endif  // TESTS_TESTING_TICKING_CLOCK_H_
