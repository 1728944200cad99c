// The losses that compare each output with a target, but for their formula.
#ifndef WORKER_LAYER_TARGET_LOSS_LAYER_H_
#define WORKER_LAYER_TARGET_LOSS_LAYER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/layer.h"

namespace muster {

// The layer of one TargetLossKind; its source file registers Create.
template <TargetLossKind kKind>
class TargetLossLayer : public Layer {
 public:
  explicit TargetLossLayer(const Shape& input) : Layer(input) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    if (inputs[0].rank() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "needs one value a target, [targets], found ", inputs[0].ToString(),
          "; a dense or flatten layer before it makes them"));
    }
    return std::make_unique<TargetLossLayer>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    TargetLossDesc desc;
    desc.kind = kKind;
    desc.batch = batch_size;
    desc.outputs = output_shape().dim(0);
    return {{desc, {}}};
  }
};

}  // namespace muster

#endif  // WORKER_LAYER_TARGET_LOSS_LAYER_H_
