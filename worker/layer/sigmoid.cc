#include <memory>
#include <vector>

#include "worker/layer/layer.h"

namespace muster {
namespace {

class Sigmoid : public Layer {
 public:
  explicit Sigmoid(const Shape& input) : Layer(input) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    return std::make_unique<Sigmoid>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t /*batch_size*/) const override {
    return {{ActivationDesc{ActivationKind::kSigmoid}, {}}};
  }
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "sigmoid", {"1 / (1 + exp(-x))", {}, &Sigmoid::Create});

}  // namespace
}  // namespace muster
