#ifndef WORKER_EXECUTOR_MOVING_AVERAGES_H_
#define WORKER_EXECUTOR_MOVING_AVERAGES_H_

#include "absl/types/span.h"
#include "proto/tensor.pb.h"
#include "worker/executor/plan_executor.h"
#include "worker/model/execution_plan.h"

namespace muster {

// Writes, where the gradients of state parameters lie, what is to be added to
// the moving averages after `executor` has run a step of the plan, which
// computes in `dtype`. Allocates nothing.
void WriteMovingAverages(absl::Span<const MovingAverage> averages,
                         const PlanExecutor& executor, DataType dtype,
                         const ParameterPlaces& places);

}  // namespace muster

#endif  // WORKER_EXECUTOR_MOVING_AVERAGES_H_
