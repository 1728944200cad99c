#ifndef COMMON_PROCESS_STOP_LATCH_H_
#define COMMON_PROCESS_STOP_LATCH_H_

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// The cause of a process' end, and its exit code.
struct StopReason {
  int exit_code = 0;
  std::string text;
};

// The first reason to end decides. Thread-safe.
class StopLatch {
 public:
  // Does nothing if there is a reason already.
  void Stop(StopReason reason);

  // Waits for a reason.
  StopReason Wait();

  // Waits at most so long; nothing if there is no reason yet.
  std::optional<StopReason> WaitFor(absl::Duration timeout);

 private:
  bool IsStopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return reason_.has_value();
  }

  absl::Mutex mu_;
  std::optional<StopReason> reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // COMMON_PROCESS_STOP_LATCH_H_
