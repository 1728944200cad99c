#ifndef WORKER_TASK_SIGNAL_TARGET_H_
#define WORKER_TASK_SIGNAL_TARGET_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/process/end_process.h"

namespace muster {

// Where a signal goes: to the task, once there is one. Before that the process
// has nothing to save, and ends at once, whatever its files and devices are
// doing. Thread-safe.
class SignalTarget {
 public:
  // `end` gets the exit code where there is no task.
  explicit SignalTarget(std::function<void(int exit_code)> end = &EndProcess)
      : task_([end = std::move(end)](int signal) { end(128 + signal); }) {}

  void OnSignal(int signal) {
    absl::MutexLock lock(&mu_);
    task_(signal);
  }

  // `task` gets the signals from now on.
  void HandTo(std::function<void(int signal)> task) {
    absl::MutexLock lock(&mu_);
    task_ = std::move(task);
  }

 private:
  absl::Mutex mu_;
  std::function<void(int signal)> task_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_TASK_SIGNAL_TARGET_H_
