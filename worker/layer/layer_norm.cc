#include <memory>
#include <vector>

#include "worker/layer/batched_shape.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

// Parameters: weights and bias, of the example's shape.
class LayerNorm : public Layer {
 public:
  LayerNorm(const Shape& input, double epsilon)
      : Layer(input, Parameters(input)), epsilon_(epsilon) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    return std::make_unique<LayerNorm>(inputs[0], attributes.Float("epsilon"));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    const Shape& shape = output_shape();
    LayerNormDesc desc;
    desc.batch = batch_size;
    desc.features = shape.num_elements();
    desc.epsilon = epsilon_;
    if (shape.rank() == 1) return {{desc, {0, 1}}};
    return {{ReshapeDesc{desc.src_shape()}, {}},
            {desc, {0, 1}},
            {ReshapeDesc{BatchedShape(batch_size, shape)}, {}}};
  }

 private:
  static std::vector<ParameterDef> Parameters(const Shape& shape) {
    return {{"weights", shape, TRAINABLE, {Initializer::Kind::kOnes}},
            {"bias", shape, TRAINABLE, {Initializer::Kind::kZeros}}};
  }

  const double epsilon_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "layer_norm",
    {"normalizes all values of an example together, then scales and shifts "
     "each",
     {FloatAttr("epsilon", "added to the variance").MoreThan(0).Default(1e-5)},
     &LayerNorm::Create});

}  // namespace
}  // namespace muster
