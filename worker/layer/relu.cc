#include <memory>
#include <vector>

#include "worker/layer/layer.h"

namespace muster {
namespace {

class Relu : public Layer {
 public:
  explicit Relu(const Shape& input) : Layer(input) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    return std::make_unique<Relu>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t /*batch_size*/) const override {
    return {{ActivationDesc{ActivationKind::kRelu}, {}}};
  }
};

[[maybe_unused]] const bool kRegistered =
    LayerRegistry::Register("relu", {"max(0, x)", {}, &Relu::Create});

}  // namespace
}  // namespace muster
