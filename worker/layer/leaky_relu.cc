#include <memory>
#include <vector>

#include "worker/layer/layer.h"

namespace muster {
namespace {

class LeakyRelu : public Layer {
 public:
  LeakyRelu(const Shape& input, double slope) : Layer(input), slope_(slope) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    return std::make_unique<LeakyRelu>(inputs[0], attributes.Float("slope"));
  }

  std::vector<LayerOperation> Lower(int64_t /*batch_size*/) const override {
    return {{ActivationDesc{ActivationKind::kLeakyRelu, slope_}, {}}};
  }

 private:
  const double slope_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "leaky_relu", {"x where it is positive, else slope * x",
                   {FloatAttr("slope", "of negative values")
                        .MoreThan(0)
                        .AtMost(1)
                        .Default(0.01)},
                   &LeakyRelu::Create});

}  // namespace
}  // namespace muster
