#ifndef WORKER_MODEL_PLAN_BUILDER_H_
#define WORKER_MODEL_PLAN_BUILDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/backend.h"
#include "worker/model/execution_plan.h"

namespace muster {

// Collects the buffers and instructions of an ExecutionPlan. Puts reorders
// between tensors and the primitives that want another layout: one for each
// tensor and layout, however many read it.
class PlanBuilder {
 public:
  // A buffer that a primitive reads in one role.
  struct Reads {
    Operand operand;
    std::vector<PlanTensor> tensors;
  };
  // A buffer that it wrote in one role.
  struct Written {
    Operand operand;
    std::vector<PlanTensor> tensors;
  };

  // `backend` outlives the builder and the plan.
  explicit PlanBuilder(Backend* backend) : backend_(backend) {}

  int AddBuffer(const PlanBuffer& buffer);
  PlanTensor NewTensor(const MemoryLayout& layout);
  // Row-major, of the backend's type.
  PlanTensor ExternalTensor(BufferSpace space, int index, const Shape& shape);

  // `tensor`, or a reordered copy of it, in `layout`.
  absl::StatusOr<PlanTensor> InLayout(const PlanTensor& tensor,
                                      const MemoryLayout& layout);
  // In row-major order, and then seen as `shape`.
  absl::StatusOr<PlanTensor> Reshaped(const PlanTensor& tensor,
                                      const Shape& shape);

  // Appends `primitive`. Of `reads`, those that it takes are brought to its
  // layouts; everything else that it takes gets new buffers, which are
  // returned.
  absl::StatusOr<std::vector<Written>> Emit(
      const std::string& name, std::unique_ptr<Primitive> primitive,
      absl::Span<const Reads> reads);

  // Appends a primitive of which all operands are given, in its layouts.
  void EmitBound(const std::string& name, std::unique_ptr<Primitive> primitive,
                 std::vector<BoundOperand> operands);

  // The sum of one or more tensors of one shape, in the layout of the first.
  absl::StatusOr<PlanTensor> Sum(const std::string& name,
                                 const std::vector<PlanTensor>& tensors);

  Backend* backend() const { return backend_; }
  ExecutionPlan& plan() { return plan_; }

 private:
  struct Copy {
    int source;
    PlanTensor tensor;
  };

  absl::Status Bind(const Primitive& primitive, const Reads& reads,
                    std::vector<BoundOperand>* operands);

  Backend* const backend_;
  ExecutionPlan plan_;
  std::vector<Copy> copies_;
};

// The tensors of one role; empty if it was not written.
std::vector<PlanTensor> Find(absl::Span<const PlanBuilder::Written> written,
                             Operand operand);

}  // namespace muster

#endif  // WORKER_MODEL_PLAN_BUILDER_H_
