#include <memory>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/layer/layer.h"
#include "worker/layer/weight_attributes.h"
#include "worker/layer/window_attributes.h"

namespace muster {
namespace {

class Conv2d : public Layer {
 public:
  Conv2d(const Conv2dDesc& desc, WeightOptions options,
         std::vector<ParameterDef> parameters)
      : Layer({desc.dst_channels, desc.window.dst_h(desc.height),
               desc.window.dst_w(desc.width)},
              std::move(parameters)),
        desc_(desc),
        options_(std::move(options)) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    const WeightOptions options = ReadWeightOptions(attributes);
    Conv2dDesc desc;
    ASSIGN_OR_RETURN(
        desc.window,
        MakeWindow(attributes, WindowUse::kConvolution, inputs[0]));
    desc.src_channels = inputs[0].dim(0);
    desc.dst_channels = attributes.Int("filters");
    desc.height = inputs[0].dim(1);
    desc.width = inputs[0].dim(2);
    desc.has_bias = options.use_bias;
    RETURN_IF_ERROR(desc.Validate());
    return std::make_unique<Conv2d>(
        desc, options, WeightParameters(options, desc.weights_shape()));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    Conv2dDesc desc = desc_;
    desc.batch = batch_size;
    return LowerWeighted(desc, options_);
  }

 private:
  const Conv2dDesc desc_;
  const WeightOptions options_;
};

std::vector<AttrDef> Table() {
  std::vector<AttrDef> table = {
      IntAttr("filters", "output channels").AtLeast(1).AtMost(1 << 30)};
  for (AttrDef& attr : WindowAttributes(WindowUse::kConvolution)) {
    table.push_back(std::move(attr));
  }
  for (AttrDef& attr : WeightAttributes()) table.push_back(std::move(attr));
  return table;
}

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "conv2d", {"cross-correlation with a window: [C, H, W] -> [filters, H', "
               "W']; weights [filters, C, KH, KW]",
               Table(), &Conv2d::Create});

}  // namespace
}  // namespace muster
