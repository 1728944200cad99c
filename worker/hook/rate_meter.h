#ifndef WORKER_HOOK_RATE_METER_H_
#define WORKER_HOOK_RATE_METER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "worker/hook/hook.h"

namespace muster {

// Rates over a window of steps: call Start, Add for each step, read the rates,
// Start again for the next window. Not thread-safe.
class RateMeter {
 public:
  void Start(absl::Time now, int64_t global_step);
  void Add(const StepRecord& step);

  // Per second, over the window so far; 0 while it has no length.
  double steps_per_s() const { return PerSecond(steps_); }
  double examples_per_s() const { return PerSecond(examples_); }
  // The rate of all workers together.
  double global_steps_per_s() const {
    return PerSecond(global_step_ - start_global_step_);
  }
  // Means over the window; 0 if it is empty.
  double mean_loss() const { return steps_ == 0 ? 0 : loss_sum_ / steps_; }
  double mean_staleness() const {
    return steps_ == 0 ? 0 : staleness_sum_ / steps_;
  }
  // The fraction of the window in which steps waited for their rows; 0 while it
  // has no length.
  double input_wait() const {
    return now_ > start_ ? absl::FDivDuration(waited_, length()) : 0;
  }
  absl::Duration length() const { return now_ - start_; }

 private:
  double PerSecond(int64_t count) const {
    const double seconds = absl::ToDoubleSeconds(now_ - start_);
    return seconds > 0 ? count / seconds : 0;
  }

  absl::Time start_;
  absl::Time now_;
  int64_t start_global_step_ = 0;
  int64_t global_step_ = 0;
  int64_t steps_ = 0;
  int64_t examples_ = 0;
  double loss_sum_ = 0;
  double staleness_sum_ = 0;
  absl::Duration waited_;
};

}  // namespace muster

#endif  // WORKER_HOOK_RATE_METER_H_
