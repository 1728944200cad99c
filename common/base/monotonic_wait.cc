#include "common/base/monotonic_wait.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace muster {
namespace {

// After a try at a mutex that somebody held.
constexpr absl::Duration kRetry = absl::Milliseconds(1);
// Far more than a process lives; it overflows nothing.
constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 10);

absl::Duration MonotonicNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

struct Wait {
  absl::Mutex* mu;
  const absl::Condition* condition;
  // Guarded by *mu.
  bool over = false;
};

bool IsOver(Wait* wait) { return wait->over || wait->condition->Eval(); }

// Ends waits at points of AwakeTime, for which it beats, on one thread of its
// own. std::mutex, because std::condition_variable alone waits on the monotonic
// clock.
//
// Lock order: a waiter's mutex, then mu_. The thread holds mu_ and only tries
// the waiter's, so it never waits for a waiter that waits for mu_; a waiter
// cannot go while the thread touches it.
class WaitTimers {
 public:
  WaitTimers() {
    // The thread may start before StopSignals blocks its signals.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { Run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  const AwakeTime& awake() const { return awake_; }

  void Add(absl::Duration timeout, Wait* wait) {
    const absl::Duration time = awake_.At(MonotonicNow()) + timeout;
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
      awake_.Beat(MonotonicNow());
      const absl::Duration now = awake_.At(MonotonicNow());
      if (waits_.empty() || waits_.begin()->first > now) {
        wakes_at_ = now + AwakeTime::kBeat;
        if (!waits_.empty()) {
          wakes_at_ = std::min(wakes_at_, waits_.begin()->first);
        }
        changed_.wait_for(lock, absl::ToChronoNanoseconds(wakes_at_ - now));
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
  std::multimap<absl::Duration, Wait*> waits_;
  absl::Duration wakes_at_ = -absl::InfiniteDuration();
  AwakeTime awake_;

  std::thread thread_;
};

// Never destroyed: its thread runs to the end of the process.
WaitTimers& Timers() {
  static auto& timers = *new WaitTimers();
  return timers;
}

}  // namespace

void AwakeTime::Beat(absl::Duration now) {
  const int64_t now_ns = absl::ToInt64Nanoseconds(now);
  const int64_t late_ns = now_ns - gaps_ns_.load() - end_ns_.load();
  if (late_ns > 0) gaps_ns_ += late_ns;
  end_ns_.store(
      now_ns - gaps_ns_.load() + absl::ToInt64Nanoseconds(kLongestGap),
      std::memory_order_release);
}

const AwakeTime& OwnAwakeTime() { return Timers().awake(); }

absl::Duration AwakeNow() { return OwnAwakeTime().At(MonotonicNow()); }

bool AwaitMonotonic(absl::Mutex* mu, const absl::Condition& condition,
                    absl::Duration timeout) {
  if (condition.Eval()) return true;
  if (timeout <= absl::ZeroDuration()) return false;
  if (timeout > kLongest) {
    mu->Await(condition);
    return true;
  }
  Wait wait{mu, &condition};
  Timers().Add(timeout, &wait);
  mu->Await(absl::Condition(&IsOver, &wait));
  Timers().Remove(&wait);
  return condition.Eval();
}

}  // namespace muster
