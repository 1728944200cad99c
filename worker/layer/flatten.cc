#include <memory>
#include <vector>

#include "worker/layer/layer.h"

namespace muster {
namespace {

class Flatten : public Layer {
 public:
  explicit Flatten(const Shape& input) : Layer({input.num_elements()}) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    return std::make_unique<Flatten>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    return {{ReshapeDesc{{batch_size, output_shape().dim(0)}}, {}}};
  }
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "flatten", {"[C, H, W] -> [C * H * W]", {}, &Flatten::Create});

}  // namespace
}  // namespace muster
