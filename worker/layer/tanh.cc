#include <memory>
#include <vector>

#include "worker/layer/layer.h"

namespace muster {
namespace {

class Tanh : public Layer {
 public:
  explicit Tanh(const Shape& input) : Layer(input) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    return std::make_unique<Tanh>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t /*batch_size*/) const override {
    return {{ActivationDesc{ActivationKind::kTanh}, {}}};
  }
};

[[maybe_unused]] const bool kRegistered =
    LayerRegistry::Register("tanh", {"tanh(x)", {}, &Tanh::Create});

}  // namespace
}  // namespace muster
