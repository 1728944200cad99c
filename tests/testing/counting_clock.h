#ifndef TESTS_TESTING_COUNTING_CLOCK_H_
#define TESTS_TESTING_COUNTING_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// Real time that counts its waits, so that a test can go on when another thread
// waits. Thread-safe.
class CountingClock : public MonotonicClock {
 public:
  bool Await(absl::Mutex* mu, const absl::Condition& condition,
             absl::Duration timeout) const override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    {
      absl::MutexLock lock(&waits_mu_);
      ++waits_;
    }
    return MonotonicClock::Await(mu, condition, timeout);
  }

  // That have begun.
  int waits() const {
    absl::MutexLock lock(&waits_mu_);
    return waits_;
  }
  // Returns when `count` have.
  void AwaitWaits(int count) const {
    const auto have_begun = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(
                                waits_mu_) { return waits_ >= count; };
    absl::MutexLock lock(&waits_mu_, absl::Condition(&have_begun));
  }

 private:
  mutable absl::Mutex waits_mu_;
  mutable int waits_ ABSL_GUARDED_BY(waits_mu_) = 0;
};

}  // namespace muster

#endif  // TESTS_TESTING_COUNTING_CLOCK_H_
