#ifndef WORKER_HOOK_STOP_CONDITIONS_H_
#define WORKER_HOOK_STOP_CONDITIONS_H_

#include <functional>

#include "absl/time/time.h"
#include "worker/hook/evaluation.h"
#include "worker/hook/hook.h"

namespace muster {

// The hook of the stop conditions that the chief watches: wall time and
// accuracy on the validation half, or without one on the test half. (Steps and
// epochs are ps task 0's: it counts all workers.) Asks for the end after the
// step in which a condition is met, with the name of its field as the reason.
class StopConditions : public Hook {
 public:
  struct Options {
    // How long the run trains; zero: off.
    absl::Duration after = absl::ZeroDuration();
    // How long it has; ModelSaver's. Not asked if `after` is off.
    std::function<absl::Duration(absl::Time now)> trained;
    // 0: off.
    double target_accuracy = 0;
  };

  StopConditions(const Options& options, RequestStop stop_job);

  // For Evaluation::AddListener.
  void OnEvaluation(const EvaluationResult& result);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AfterWait(int64_t global_step) override;

 private:
  const Options options_;
  const RequestStop stop_job_;
  bool accurate_ = false;
};

}  // namespace muster

#endif  // WORKER_HOOK_STOP_CONDITIONS_H_
