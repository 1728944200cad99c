#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

class SoftmaxCrossEntropy : public Layer {
 public:
  SoftmaxCrossEntropy(const Shape& input, double label_smoothing)
      : Layer(input), label_smoothing_(label_smoothing) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    if (inputs[0].rank() != 1 || inputs[0].dim(0) < 2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "needs one value a class, [classes] with 2 or more, "
          "found ",
          inputs[0].ToString(), "; a dense layer before it makes them"));
    }
    return std::make_unique<SoftmaxCrossEntropy>(
        inputs[0], attributes.Float("label_smoothing"));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    SoftmaxCrossEntropyDesc desc;
    desc.batch = batch_size;
    desc.classes = output_shape().dim(0);
    desc.label_smoothing = label_smoothing_;
    return {{desc, {}}};
  }

 private:
  const double label_smoothing_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "softmax_cross_entropy",
    {"loss: mean of -log(softmax(x)[label]); labels are class numbers",
     {FloatAttr("label_smoothing",
                "the part of each target that goes to all classes alike")
          .AtLeast(0)
          .LessThan(1)
          .Default(0)},
     &SoftmaxCrossEntropy::Create,
     /*min_inputs=*/1,
     /*max_inputs=*/1,
     LossType{/*reads_targets=*/false, Prediction::kSoftmax, {"accuracy"}}});

}  // namespace
}  // namespace muster
