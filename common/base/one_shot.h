#ifndef COMMON_BASE_ONE_SHOT_H_
#define COMMON_BASE_ONE_SHOT_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// Something that happens once and is waited for: absl::Notification, but the
// waiting is the clock's. May be destroyed as soon as Wait has returned.
// Thread-safe.
class OneShot {
 public:
  // `clock` outlives this.
  explicit OneShot(const Clock* clock) : clock_(clock) {}
  // Waits for the Notify that may still be letting go of mu_.
  ~OneShot() { absl::MutexLock lock(&mu_); }

  OneShot(const OneShot&) = delete;
  OneShot& operator=(const OneShot&) = delete;

  // REQUIRES: called once.
  void Notify() {
    absl::MutexLock lock(&mu_);
    happened_ = true;
  }

  void Wait() {
    absl::MutexLock lock(&mu_);
    clock_->Await(&mu_, absl::Condition(&happened_), absl::InfiniteDuration());
  }

 private:
  const Clock* const clock_;
  absl::Mutex mu_;
  bool happened_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // COMMON_BASE_ONE_SHOT_H_
