#ifndef WORKER_EXECUTOR_STEP_LISTENER_H_
#define WORKER_EXECUTOR_STEP_LISTENER_H_

#include "absl/status/status.h"

namespace muster {

// Hears of a training step while it is computed, on the thread that computes
// it: what takes long here, the step takes longer. An error ends the step, and
// what has been heard of it then is all.
class StepListener {
 public:
  virtual ~StepListener() = default;

  // The forward pass is over, with this loss: the mean cross-entropy, without
  // the penalties, which the backward pass adds. An error ends the step, which
  // returns it as it is.
  virtual absl::Status OnForward(double loss) = 0;

  // CompiledModel::gradient(parameter) is what the step leaves there: every use
  // of the parameter is in it, and its penalty. The step reads the parameter
  // itself no more. Once for each parameter that is not frozen, in the order of
  // the backward pass; state tensors come last.
  virtual void OnGradient(int parameter) = 0;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_STEP_LISTENER_H_
