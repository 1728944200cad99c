#ifndef WORKER_MODEL_PLAN_COMPILER_H_
#define WORKER_MODEL_PLAN_COMPILER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/backend.h"
#include "worker/model/execution_plan.h"
#include "worker/model/model_graph.h"
#include "worker/model/program.h"

namespace muster {

struct PlanOptions {
  // Training only: also make the gradient of the model's input.
  bool input_gradient = false;
  // Training only: the same program for an equal part of the batch's rows; null
  // for the whole. Forward and the gradients of sources are then made for one
  // such micro-batch after another, so that devices work side by side, each on
  // another one; the loss, and the gradients of a convolution's or dense
  // layer's weights, once for all of them. Not kept.
  const Program* micro_batch = nullptr;
};

// Makes the primitives of `program` and the order in which they run: forward,
// and for Phase::kTraining backward, with reorders only where two primitives
// disagree about a layout. An output that several operations read gets the sum
// of their gradients, and so does a parameter that several layers share. Frozen
// parameters get none, and what leads to nothing but those no backward pass.
// `backends` are the devices that the operations name, of one dtype; they
// outlive the plan. A value that another device reads is transferred; input,
// labels and parameters lie on the device that reads them first. L2 penalties
// are added where the loss is made. Errors: the backend's, with the layer's
// name.
absl::StatusOr<ExecutionPlan> CompilePlan(
    const Program& program, absl::Span<const ModelGraph::Parameter> parameters,
    const PlanOptions& options, absl::Span<Backend* const> backends);

}  // namespace muster

#endif  // WORKER_MODEL_PLAN_COMPILER_H_
