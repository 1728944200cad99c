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
// between tensors and the primitives that want another layout, and transfers
// where another device made the tensor: one for each tensor, layout and device,
// however many read it.
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

  // `backends`, by device, outlive the builder and the plan; all have one
  // dtype. Device 0 is in use.
  explicit PlanBuilder(absl::Span<Backend* const> backends)
      : backends_(backends) {
    plan_.num_devices = static_cast<int>(backends.size());
  }

  // From now on buffers and instructions are added on `device`, and tensors are
  // brought to it.
  void UseDevice(int device) { device_ = device; }
  int DeviceOf(const PlanTensor& tensor) const {
    return plan_.buffers[tensor.buffer].device;
  }

  // The labels (kLabels) or the rows' weights (kRowWeights) of a batch, as the
  // loss reads them.
  PlanTensor OfBatch(const Primitive& loss, Operand operand);
  int AddBuffer(const PlanBuffer& buffer);
  PlanTensor NewTensor(const MemoryLayout& layout);
  // Row-major, of the backend's type.
  PlanTensor ExternalTensor(BufferSpace space, int index, const Shape& shape);

  // `tensor`, or a copy of it, on the device in use: row-major, unless devices
  // of one kind have it. So a tensor lies alike however a model is divided.
  absl::StatusOr<PlanTensor> OnDevice(const PlanTensor& tensor);
  // `source`, or a reordered copy of it, in `layout` on the device in use.
  absl::StatusOr<PlanTensor> InLayout(const PlanTensor& source,
                                      const MemoryLayout& layout);
  // `count` of `parts` equal ranges of dimension `dim` of an external tensor,
  // from the `begin`-th on, in its memory. Only transfers read or write it.
  struct Range {
    int begin = 0;
    int count = 1;
    int parts = 1;
    int dim = 0;
  };
  PlanTensor ExternalPart(BufferSpace space, int index, const Shape& whole,
                          const Range& range);
  // Copies `src` as it is to `dst`, on the device in use, which has one of
  // them.
  void EmitTransfer(const PlanTensor& src, const PlanTensor& dst);

  // Tensors of one shape, the rows of each behind those of the one before it,
  // as one on the device in use: in their own memory, or where that cannot be,
  // in copies.
  absl::StatusOr<PlanTensor> Joined(std::vector<PlanTensor> parts);
  // `whole`, which lies on the device in use, in `count` equal parts of its
  // rows: in its own memory, or where that would not be aligned, in copies.
  absl::StatusOr<std::vector<PlanTensor>> Divided(const PlanTensor& whole,
                                                  int count);

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

  // The sum of one or more tensors of one shape, in the layout of the first as
  // it is on the device in use.
  absl::StatusOr<PlanTensor> Sum(const std::string& name,
                                 const std::vector<PlanTensor>& summands);

  Backend* backend() const { return backends_[device_]; }
  ExecutionPlan& plan() { return plan_; }

 private:
  struct Copy {
    int source;
    PlanTensor tensor;
  };

  // The copy of buffer `source` on the device in use that has `layout`; null if
  // there is none.
  const Copy* FindCopy(int source, const MemoryLayout& layout) const;
  // The `index`-th of equal parts of `whole`, in its memory.
  PlanTensor PartOf(int whole, const MemoryLayout& layout, int index);
  // The buffer of which these are all parts, in their order; -1 if there is
  // none.
  int WholeOf(const std::vector<PlanTensor>& parts) const;
  // Lets them lie in `whole`. False if they cannot.
  bool MoveInto(int whole, const std::vector<PlanTensor>& parts);
  absl::Status Bind(const Primitive& primitive, const Reads& reads,
                    std::vector<BoundOperand>* operands);

  const absl::Span<Backend* const> backends_;
  int device_ = 0;
  ExecutionPlan plan_;
  std::vector<Copy> copies_;
};

// The tensors of one role; empty if it was not written.
std::vector<PlanTensor> Find(absl::Span<const PlanBuilder::Written> written,
                             Operand operand);

}  // namespace muster

#endif  // WORKER_MODEL_PLAN_BUILDER_H_
