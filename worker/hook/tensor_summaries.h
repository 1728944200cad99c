#ifndef WORKER_HOOK_TENSOR_SUMMARIES_H_
#define WORKER_HOOK_TENSOR_SUMMARIES_H_

#include <cstdint>

#include "common/summary/write_summary.h"
#include "proto/summary.pb.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"

namespace muster {

// The hook that writes every parameter and gradient every so many global steps,
// from one step of this worker, NAME being "conv1/weights":
//   parameters/NAME, gradients/NAME             histograms
//   parameter_norms/NAME, gradient_norms/NAME   sqrt of the sum of squares
// A state tensor (a moving average) has no gradient. This goes through all
// values twice while the step waits: give it a long period.
class TensorSummaries : public Hook {
 public:
  TensorSummaries(int64_t every_steps, WriteSummary write);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::StatusOr<PushDecision> BeforePush(const StepRecord& step) override;
  absl::Status AfterStep(const StepRecord& step) override;

 private:
  const WriteSummary write_;
  StepPeriod period_;
  // The summary of the step that is being pushed; empty if it is not its turn.
  Summary summary_;
};

}  // namespace muster

#endif  // WORKER_HOOK_TENSOR_SUMMARIES_H_
