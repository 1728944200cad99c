#ifndef WORKER_LAYER_CONV2D_LAYER_H_
#define WORKER_LAYER_CONV2D_LAYER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/attributes.h"
#include "common/tensor/shape.h"
#include "worker/layer/layer.h"
#include "worker/layer/weight_attributes.h"

namespace muster {

// A cross-correlation with a window: [C, H, W] -> [O, H', W'], with weights
// [O, C / groups, KH, KW]. Immutable.
class Conv2dLayer : public Layer {
 public:
  struct Channels {
    int64_t dst = 1;
    int64_t groups = 1;
  };

  // `attributes` are those of Conv2dAttributes. Errors: those of MakeWindow and
  // Conv2dDesc::Validate.
  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, const Shape& input,
      const Channels& channels);

  std::vector<LayerOperation> Lower(int64_t batch_size) const override;

 private:
  Conv2dLayer(const Conv2dDesc& desc, WeightOptions options,
              std::vector<ParameterDef> parameters);

  const Conv2dDesc desc_;
  const WeightOptions options_;
};

// `own`, and the attributes of window and weights.
std::vector<AttrDef> Conv2dAttributes(std::vector<AttrDef> own);

}  // namespace muster

#endif  // WORKER_LAYER_CONV2D_LAYER_H_
