#ifndef TESTS_TESTING_FAKE_CLOCK_H_
#define TESTS_TESTING_FAKE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// A clock that moves only when the test says so. It starts at a time that is
// not 0, so that code which takes a zero time for "never" shows. Thread-safe.
class FakeClock : public Clock {
 public:
  FakeClock() = default;

  absl::Time Now() const override {
    absl::MutexLock lock(&mu_);
    return now_;
  }

  // REQUIRES: by >= 0; the clock is monotonic.
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mu_);
    now_ += by;
  }

 private:
  mutable absl::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_) =
      absl::UnixEpoch() + absl::Seconds(1000);
};

}  // namespace muster

#endif  // TESTS_TESTING_FAKE_CLOCK_H_
