#include "common/base/monotonic_wait.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace muster {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// After a try at a mutex that somebody held.
constexpr std::chrono::milliseconds kRetry{1};
// Far more than a process lives; it overflows nothing.
constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 10);

struct Wait {
  absl::Mutex* mu;
  const absl::Condition* condition;
  // Guarded by *mu.
  bool over = false;
};

bool IsOver(Wait* wait) { return wait->over || wait->condition->Eval(); }

// Ends waits at points in time, on one thread of its own. std::mutex, because
// std::condition_variable alone waits on the monotonic clock.
//
// Lock order: a waiter's mutex, then mu_. The thread holds mu_ and only tries
// the waiter's, so it never waits for a waiter that waits for mu_; a waiter
// cannot go while the thread touches it.
class WaitTimers {
 public:
  WaitTimers() : thread_([this] { Run(); }) {}

  void Add(SteadyTime time, Wait* wait) {
    const std::lock_guard<std::mutex> lock(mu_);
    waits_.emplace(time, wait);
    if (time < wakes_at_) changed_.notify_one();
  }

  void Remove(Wait* wait) {
    const std::lock_guard<std::mutex> lock(mu_);
    for (auto it = waits_.begin(); it != waits_.end(); ++it) {
      if (it->second != wait) continue;
      waits_.erase(it);
      return;
    }
  }

 private:
  [[noreturn]] void Run() {
    std::unique_lock<std::mutex> lock(mu_);
    while (true) {
      const SteadyTime now = std::chrono::steady_clock::now();
      if (waits_.empty() || waits_.begin()->first > now) {
        wakes_at_ = waits_.empty() ? now + std::chrono::hours(1)
                                   : waits_.begin()->first;
        changed_.wait_until(lock, wakes_at_);
        continue;
      }
      Wait* const wait = waits_.begin()->second;
      waits_.erase(waits_.begin());
      if (!End(wait)) waits_.emplace(now + kRetry, wait);
    }
  }

  // False if the waiter's mutex was held.
  static bool End(Wait* wait) {
    if (!wait->mu->TryLock()) return false;
    wait->over = true;
    wait->mu->Unlock();
    return true;
  }

  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_. There are as many as threads that wait.
  std::multimap<SteadyTime, Wait*> waits_;
  SteadyTime wakes_at_ = SteadyTime::min();

  // Last, so that it starts when the rest is there.
  std::thread thread_;
};

}  // namespace

bool AwaitMonotonic(absl::Mutex* mu, const absl::Condition& condition,
                    absl::Duration timeout) {
  if (condition.Eval()) return true;
  if (timeout <= absl::ZeroDuration()) return false;
  if (timeout > kLongest) {
    mu->Await(condition);
    return true;
  }
  // Never destroyed: its thread runs to the end of the process.
  static auto& timers = *new WaitTimers();
  Wait wait{mu, &condition};
  timers.Add(
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout),
      &wait);
  mu->Await(absl::Condition(&IsOver, &wait));
  timers.Remove(&wait);
  return condition.Eval();
}

}  // namespace muster
