#ifndef WORKER_TASK_SIGNAL_TARGET_H_
#define WORKER_TASK_SIGNAL_TARGET_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/process/stop_latch.h"

namespace muster {

// Where a signal goes: to the task, once there is one; before that it stops the
// latch, which ends the waiting of what is being made. Thread-safe.
class SignalTarget {
 public:
  void OnSignal(int signal) {
    absl::MutexLock lock(&mu_);
    if (task_ != nullptr) return task_(signal);
    latch_.Stop({128 + signal, absl::StrCat("signal ", signal)});
  }

  // `task`, which does not block, gets the signals from now on; null: the latch
  // again. Returns the exit code of what has stopped the latch before; then no
  // task gets any.
  std::optional<int> HandTo(std::function<void(int signal)> task) {
    absl::MutexLock lock(&mu_);
    const std::optional<StopReason> reason =
        latch_.WaitFor(absl::ZeroDuration());
    task_ = reason.has_value() ? nullptr : std::move(task);
    if (reason.has_value()) return reason->exit_code;
    return std::nullopt;
  }

  StopLatch* latch() { return &latch_; }

 private:
  StopLatch latch_;
  absl::Mutex mu_;
  std::function<void(int signal)> task_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_TASK_SIGNAL_TARGET_H_
