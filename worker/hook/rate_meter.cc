#include "worker/hook/rate_meter.h"

namespace muster {

void RateMeter::Start(absl::Time now, int64_t global_step) {
  *this = RateMeter();
  start_ = now_ = now;
  start_global_step_ = global_step_ = global_step;
}

void RateMeter::Add(const StepRecord& step) {
  now_ = step.now;
  global_step_ = step.global_step;
  ++steps_;
  examples_ += step.examples;
  loss_sum_ += step.loss;
  staleness_sum_ += step.staleness;
  waited_ += step.times.read - step.times.read_begun;
}

}  // namespace muster
