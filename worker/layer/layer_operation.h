#ifndef WORKER_LAYER_LAYER_OPERATION_H_
#define WORKER_LAYER_LAYER_OPERATION_H_

#include <variant>
#include <vector>

#include "common/tensor/shape.h"
#include "worker/backend/operation.h"

namespace muster {

// The same elements, in row-major order, with another shape (batch included).
struct ReshapeDesc {
  Shape shape;
};

// Batch normalization, and how fast its moving averages follow:
//   moving <- momentum * moving + (1 - momentum) * batch's
struct BatchNormStep {
  BatchNormDesc desc;
  double momentum = 0.99;
};

// Any operation of a backend, or one of those above. A batch normalization is a
// BatchNormStep here.
template <typename... Descs>
std::variant<Descs..., BatchNormStep, ReshapeDesc> WithThoseOfLayers(
    const std::variant<Descs...>&);
using OperationDesc = decltype(WithThoseOfLayers(Operation()));

// One operation of a layer. Phases are left at their default; the compiler
// sets them.
struct LayerOperation {
  OperationDesc desc;
  // Indices of the layer's parameters: weights, bias, and for BatchNormStep
  // the moving mean and variance.
  std::vector<int> parameters;
};

}  // namespace muster

#endif  // WORKER_LAYER_LAYER_OPERATION_H_
