#include "common/process/stop_latch.h"

#include <utility>

#include "common/base/monotonic_wait.h"

namespace muster {

void StopLatch::Stop(StopReason reason) {
  absl::MutexLock lock(&mu_);
  if (!reason_.has_value()) reason_ = std::move(reason);
}

StopReason StopLatch::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &StopLatch::IsStopped));
  return *reason_;
}

std::optional<StopReason> StopLatch::WaitFor(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  AwaitMonotonic(&mu_, absl::Condition(this, &StopLatch::IsStopped), timeout);
  return reason_;
}

}  // namespace muster
