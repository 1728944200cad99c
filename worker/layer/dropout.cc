#include <memory>
#include <vector>

#include "worker/layer/batched_shape.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

class Dropout : public Layer {
 public:
  Dropout(const Shape& input, double rate) : Layer(input), rate_(rate) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    return std::make_unique<Dropout>(inputs[0], attributes.Float("rate"));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    return {{DropoutDesc{rate_, BatchedShape(batch_size, output_shape())}, {}}};
  }

 private:
  const double rate_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "dropout",
    {"zeroes a fraction of the values, scales the others; training only",
     {FloatAttr("rate", "fraction of zeroes")
          .AtLeast(0)
          .LessThan(1)
          .Default(0.5)},
     &Dropout::Create});

}  // namespace
}  // namespace muster
