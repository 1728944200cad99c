#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

class SoftmaxCrossEntropy : public Layer {
 public:
  explicit SoftmaxCrossEntropy(const Shape& input) : Layer(input) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    if (inputs[0].rank() != 1 || inputs[0].dim(0) < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "needs one value a class, [classes] with 2 or more, "
          "found ",
          inputs[0].ToString(), "; a dense layer before it makes them"));
    }
    return std::make_unique<SoftmaxCrossEntropy>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    SoftmaxCrossEntropyDesc desc;
    desc.batch = batch_size;
    desc.classes = output_shape().dim(0);
    return {{desc, {}}};
  }
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "softmax_cross_entropy",
    {"loss: mean of -log(softmax(x)[label]); labels are class numbers",
     {},
     &SoftmaxCrossEntropy::Create,
     /*min_inputs=*/1,
     /*max_inputs=*/1,
     /*is_loss=*/true});

}  // namespace
}  // namespace muster
