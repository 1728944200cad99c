#ifndef WORKER_CLIENT_LINK_TIMER_QUEUE_H_
#define WORKER_CLIENT_LINK_TIMER_QUEUE_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace muster {

// Runs functions at points in time. Thread-safe.
class Timers {
 public:
  virtual ~Timers() = default;

  // Runs `function` at `time` or soon after, with no lock held. It must not
  // block.
  virtual void RunAt(absl::Time time, std::function<void()> function) = 0;
};

// Timers of MonotonicClock, on one thread of its own.
//
// It has a std::mutex where the rest of Muster has absl::Mutex: only
// std::condition_variable waits on the monotonic clock here (Abseil 20220623
// waits on the wall clock, and a step of it would stop every retry).
class TimerQueue : public Timers {
 public:
  TimerQueue();
  // Drops what has not run, waits for what runs. REQUIRES: not called from a
  // function of the queue.
  ~TimerQueue() override;

  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  void RunAt(absl::Time time, std::function<void()> function) override;

 private:
  void Run();

  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  std::multimap<absl::Time, std::function<void()>> functions_;
  bool stopping_ = false;

  // Last, so that it starts when the rest is there.
  std::thread thread_;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_TIMER_QUEUE_H_
