#include "worker/client/link/timer_queue.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"

namespace muster {
namespace {

// Longer waits begin anew: more nanoseconds might overflow.
constexpr absl::Duration kLongest = absl::Hours(1);

}  // namespace

TimerQueue::TimerQueue() : thread_([this] { Run(); }) {}

TimerQueue::~TimerQueue() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void TimerQueue::RunAt(absl::Time time, std::function<void()> function) {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    functions_.emplace(time, std::move(function));
  }
  changed_.notify_one();
}

void TimerQueue::Run() {
  const MonotonicClock clock{};
  std::unique_lock<std::mutex> lock(mu_);
  while (!stopping_) {
    if (functions_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = functions_.begin();
    const absl::Duration left = first->first - clock.Now();
    if (left > absl::ZeroDuration()) {
      changed_.wait_for(lock,
                        absl::ToChronoNanoseconds(std::min(left, kLongest)));
      continue;
    }
    std::function<void()> function = std::move(first->second);
    functions_.erase(first);
    lock.unlock();
    function();
    function = nullptr;  // what it held may come back to this queue
    lock.lock();
  }
}

}  // namespace muster
