#ifndef WORKER_MODEL_PLAN_PARAMETERS_H_
#define WORKER_MODEL_PLAN_PARAMETERS_H_

#include <cstddef>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/model/execution_plan.h"
#include "worker/model/model_graph.h"
#include "worker/model/plan_builder.h"
#include "worker/model/program.h"

namespace muster {

// The canonical parameters of a plan while it is compiled: where they are read,
// and how their gradients and penalties come about.
class PlanParameters {
 public:
  // `program`: the whole batch's. All outlive it.
  PlanParameters(absl::Span<const ModelGraph::Parameter> parameters,
                 const Program& program, PlanBuilder* builder);

  // Whether the operation has a parameter that is not frozen.
  bool TrainsAny(const ProgramOp& op) const;

  // The first `count` parameters of `op`, on its device, which is in use: whole
  // ones where they lie, or copies of parts.
  std::vector<PlanTensor> Read(const ProgramOp& op, size_t count);

  // Before AddGradient: `op` will give so many gradients of each parameter.
  void Expect(const ProgramOp& op, int gradients);

  // Takes a gradient of the operation's `index`th parameter, if `gradient` has
  // one. The last one of a parameter makes its canonical gradient, and adds its
  // penalty to that and to the loss.
  absl::Status AddGradient(const ProgramOp& op, size_t index,
                           const std::vector<PlanTensor>& gradient);

  // Adds the penalties to the loss alone.
  absl::Status AddPenalties();

 private:
  struct State {
    PlanTensor tensor;
    // Gradients that are still to come.
    int expected = 0;
    // As many as an operation gives of it, or of its part of it.
    int of_an_operation = 0;
    std::vector<PlanTensor> gradients;
    // By the number of a part, its gradients so far.
    std::map<int, std::vector<PlanTensor>> part_gradients;
  };

  // Whether the operation reads a part of it alone.
  bool IsDivided(const ProgramOp& op, int parameter) const;
  // Copies the gradient of a part to its place in the canonical one.
  absl::Status AddPartGradient(const ProgramOp& op, int parameter,
                               const PlanTensor& gradient);
  // A penalty adds to the loss too: it needs both on one device.
  int GradientDevice(int parameter) const;
  absl::Status AddPenalty(int parameter, int gradient);

  const absl::Span<const ModelGraph::Parameter> parameters_;
  const Program& program_;
  PlanBuilder& builder_;
  std::vector<State> states_;
};

}  // namespace muster

#endif  // WORKER_MODEL_PLAN_PARAMETERS_H_
