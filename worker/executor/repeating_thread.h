#ifndef WORKER_EXECUTOR_REPEATING_THREAD_H_
#define WORKER_EXECUTOR_REPEATING_THREAD_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// A thread that runs the same function each time it is told to. What was
// written before Start is seen by the function, and what the function wrote is
// seen after Wait. Start and Wait are for one other thread, in turn; neither
// allocates.
class RepeatingThread {
 public:
  // `function` throws nothing.
  explicit RepeatingThread(std::function<void()> function);
  // Waits for a run that is under way.
  ~RepeatingThread();

  RepeatingThread(const RepeatingThread&) = delete;
  RepeatingThread& operator=(const RepeatingThread&) = delete;

  // Lets the function run once. REQUIRES: no run is under way.
  void Start();
  // Until the run that was started is over; at once if none was.
  void Wait();

 private:
  enum class State { kIdle, kRun, kStop };

  void Loop();
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return state_ == State::kIdle;
  }
  bool IsNotIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return state_ != State::kIdle;
  }

  // Constant after construction.
  const std::function<void()> function_;

  absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kIdle;

  // Last, so that it starts after all else.
  std::thread thread_;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_REPEATING_THREAD_H_
