#include "worker/layer/conv2d_layer.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "worker/layer/window_attributes.h"

namespace muster {

Conv2dLayer::Conv2dLayer(const Conv2dDesc& desc, WeightOptions options,
                         std::vector<ParameterDef> parameters)
    : Layer({desc.dst_channels, desc.window.dst_h(desc.height),
             desc.window.dst_w(desc.width)},
            std::move(parameters)),
      desc_(desc),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Layer>> Conv2dLayer::Create(
    const Attributes& attributes, const Shape& input,
    const Channels& channels) {
  WeightOptions options = ReadWeightOptions(attributes);
  Conv2dDesc desc;
  ASSIGN_OR_RETURN(desc.window,
                   MakeWindow(attributes, WindowUse::kConvolution, input));
  desc.src_channels = input.dim(0);
  desc.dst_channels = channels.dst;
  desc.groups = channels.groups;
  desc.height = input.dim(1);
  desc.width = input.dim(2);
  desc.has_bias = options.use_bias;
  RETURN_IF_ERROR(desc.Validate());
  options.initializer.groups = desc.groups;
  return absl::WrapUnique(new Conv2dLayer(
      desc, options, WeightParameters(options, desc.weights_shape())));
}

std::vector<LayerOperation> Conv2dLayer::Lower(int64_t batch_size) const {
  Conv2dDesc desc = desc_;
  desc.batch = batch_size;
  return LowerWeighted(desc, options_);
}

std::vector<AttrDef> Conv2dAttributes(std::vector<AttrDef> own) {
  for (AttrDef& attr : WindowAttributes(WindowUse::kConvolution)) {
    own.push_back(std::move(attr));
  }
  for (AttrDef& attr : WeightAttributes()) own.push_back(std::move(attr));
  return own;
}

}  // namespace muster
