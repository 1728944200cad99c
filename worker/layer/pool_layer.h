#ifndef WORKER_LAYER_POOL_LAYER_H_
#define WORKER_LAYER_POOL_LAYER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/tensor/shape.h"
#include "worker/layer/layer.h"

namespace muster {

// A layer that keeps one value of each window: [C, H, W] -> [C, H', W'].
// Immutable.
class PoolLayer : public Layer {
 public:
  // For LayerType::create; the attributes are WindowAttributes(kPooling).
  // Errors: MakeWindow's.
  template <PoolKind kind>
  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    return CreateKind(kind, attributes, inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override;

 private:
  PoolLayer(PoolKind kind, const Shape& input, const WindowDesc& window);
  static absl::StatusOr<std::unique_ptr<Layer>> CreateKind(
      PoolKind kind, const Attributes& attributes, const Shape& input);

  const PoolKind kind_;
  const Shape input_;
  const WindowDesc window_;
};

// A layer that keeps one value of each channel: [C, H, W] -> [C]. Immutable.
class GlobalPoolLayer : public Layer {
 public:
  // For LayerType::create; there are no attributes. Errors: InvalidArgument
  // for an input that is no image.
  template <PoolKind kind>
  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    return CreateKind(kind, inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override;

 private:
  GlobalPoolLayer(PoolKind kind, const Shape& input);
  static absl::StatusOr<std::unique_ptr<Layer>> CreateKind(PoolKind kind,
                                                           const Shape& input);

  const PoolKind kind_;
  const Shape input_;
};

}  // namespace muster

#endif  // WORKER_LAYER_POOL_LAYER_H_
