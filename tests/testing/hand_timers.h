#ifndef TESTS_TESTING_HAND_TIMERS_H_
#define TESTS_TESTING_HAND_TIMERS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/client/link/timer_queue.h"

namespace muster {

// Runs what is due when the test says so. Thread-safe.
class HandTimers : public Timers {
 public:
  void RunAt(absl::Time time, std::function<void()> function) override {
    absl::MutexLock lock(&mu_);
    functions_.emplace_back(time, std::move(function));
  }
  void RunUntil(absl::Time now) {
    for (auto& [time, function] : TakeAll()) {
      if (time <= now) {
        function();
      } else {
        RunAt(time, std::move(function));
      }
    }
  }
  size_t size() const {
    absl::MutexLock lock(&mu_);
    return functions_.size();
  }

 private:
  using Functions = std::vector<std::pair<absl::Time, std::function<void()>>>;

  Functions TakeAll() {
    absl::MutexLock lock(&mu_);
    return std::exchange(functions_, {});
  }

  mutable absl::Mutex mu_;
  Functions functions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // TESTS_TESTING_HAND_TIMERS_H_
