#include <memory>
#include <vector>

#include "worker/layer/layer.h"

namespace muster {
namespace {

// Parameters: scale and shift, trainable; moving_mean and moving_variance,
// state. An input is [C, H, W], normalized by channel, or [C].
class BatchNorm : public Layer {
 public:
  BatchNorm(const Shape& input, double momentum, double epsilon)
      : Layer(input, Parameters({input.dim(0)}, 1 - momentum)),
        momentum_(momentum),
        epsilon_(epsilon) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    return std::make_unique<BatchNorm>(inputs[0], attributes.Float("momentum"),
                                       attributes.Float("epsilon"));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    const Shape& shape = output_shape();
    BatchNormStep step;
    step.momentum = momentum_;
    step.desc.batch = batch_size;
    step.desc.channels = shape.dim(0);
    step.desc.epsilon = epsilon_;
    if (shape.rank() == 1) {
      return {{ReshapeDesc{{batch_size, shape.dim(0), 1, 1}}, {}},
              {step, {0, 1, 2, 3}},
              {ReshapeDesc{{batch_size, shape.dim(0)}}, {}}};
    }
    step.desc.height = shape.dim(1);
    step.desc.width = shape.dim(2);
    return {{step, {0, 1, 2, 3}}};
  }

 private:
  static std::vector<ParameterDef> Parameters(const Shape& shape,
                                              double decay) {
    const Initializer zeros{Initializer::Kind::kZeros};
    const Initializer ones{Initializer::Kind::kOnes};
    return {{"scale", shape, TRAINABLE, ones},
            {"shift", shape, TRAINABLE, zeros},
            {"moving_mean", shape, STATE, zeros, /*l2=*/0, decay},
            {"moving_variance", shape, STATE, ones, /*l2=*/0, decay}};
  }

  const double momentum_;
  const double epsilon_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "batch_norm",
    {"normalizes each channel over the batch, then scales and shifts it",
     {FloatAttr("momentum", "of the moving averages")
          .AtLeast(0)
          .LessThan(1)
          .Default(0.9),
      FloatAttr("epsilon", "added to the variance").MoreThan(0).Default(1e-5)},
     &BatchNorm::Create});

}  // namespace
}  // namespace muster
