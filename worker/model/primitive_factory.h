#ifndef WORKER_MODEL_PRIMITIVE_FACTORY_H_
#define WORKER_MODEL_PRIMITIVE_FACTORY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/backend/backend.h"
#include "worker/layer/layer_operation.h"

namespace muster {

// Makes the forward primitive of `desc` for sources that lie in these layouts.
// REQUIRES: not a ReshapeDesc, which moves nothing.
// Errors: the backend's.
absl::StatusOr<std::unique_ptr<Primitive>> CreateForward(
    const OperationDesc& desc, absl::Span<const MemoryLayout> srcs,
    Backend* backend);

// Which gradients the backward primitives are to make.
struct BackwardNeeds {
  bool src = true;
  bool parameters = true;
};

// Makes the backward primitives: none for Add (its gradient is diff_dst),
// Reshape and the loss (forward makes it). `srcs` are forward's layouts.
// Convolution and dense take the gradient before their own ReLU.
absl::StatusOr<std::vector<std::unique_ptr<Primitive>>> CreateBackward(
    const OperationDesc& desc, absl::Span<const MemoryLayout> srcs,
    const BackwardNeeds& needs, Backend* backend);

// Whether its weights' gradient has a primitive of its own.
bool HasGradientByPart(const OperationDesc& desc);

// Whether the operation ends with a ReLU that its backward primitives leave to
// an activation primitive.
bool EndsWithRelu(const OperationDesc& desc);

}  // namespace muster

#endif  // WORKER_MODEL_PRIMITIVE_FACTORY_H_
