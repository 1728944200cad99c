#ifndef WORKER_HOOK_STOP_ON_PLATEAU_H_
#define WORKER_HOOK_STOP_ON_PLATEAU_H_

#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "worker/hook/hook.h"

namespace muster {

// A hook that ends the training when the chief's loss has not fallen for
// `patience` of its steps. An example: README.md quotes it.
class StopOnPlateau : public Hook {
 public:
  StopOnPlateau(int64_t patience, RequestStop stop_job)
      : patience_(patience), stop_job_(std::move(stop_job)) {}

  absl::Status AfterStep(const StepRecord& step) override {
    if (step.loss < best_loss_) {
      best_loss_ = step.loss;
      best_step_ = step.step;
    } else if (step.step - best_step_ >= patience_) {
      stop_job_("plateau", absl::OkStatus());
    }
    return absl::OkStatus();
  }

 private:
  const int64_t patience_;
  const RequestStop stop_job_;
  double best_loss_ = std::numeric_limits<double>::infinity();
  int64_t best_step_ = 0;
};

}  // namespace muster

#endif  // WORKER_HOOK_STOP_ON_PLATEAU_H_
