#ifndef WORKER_EXECUTOR_PARAMETER_GATE_H_
#define WORKER_EXECUTOR_PARAMETER_GATE_H_

#include "absl/status/status.h"

namespace muster {

// Lets a training step begin while its parameters are still on their way: the
// step asks for each of them before it first reads it. Thread-safe, where
// several towers read the same parameters.
class ParameterGate {
 public:
  virtual ~ParameterGate() = default;

  // Returns when the values of `parameter` are there, and stay as they are
  // until the end of the step. An error ends the step, which returns it as it
  // is.
  virtual absl::Status BeforeUse(int parameter) = 0;
};

}  // namespace muster

#endif  // WORKER_EXECUTOR_PARAMETER_GATE_H_
