#ifndef WORKER_LAYER_ACTIVATION_LAYER_H_
#define WORKER_LAYER_ACTIVATION_LAYER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/tensor/shape.h"
#include "worker/layer/layer.h"

namespace muster {

// A layer that applies a function to each element. Immutable.
class ActivationLayer : public Layer {
 public:
  ActivationLayer(ActivationKind kind, const Shape& input)
      : Layer(input), kind_(kind) {}

  // For LayerType::create; there are no attributes and no errors.
  template <ActivationKind kind>
  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    return std::make_unique<ActivationLayer>(kind, inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t /*batch_size*/) const override {
    return {{ActivationDesc{kind_}, {}}};
  }

 private:
  const ActivationKind kind_;
};

}  // namespace muster

#endif  // WORKER_LAYER_ACTIVATION_LAYER_H_
