#include <cstdint>
#include <memory>

#include "worker/layer/conv2d_layer.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<Layer>> Create(const Attributes& attributes,
                                              absl::Span<const Shape> inputs) {
  return Conv2dLayer::Create(
      attributes, inputs[0],
      {attributes.Int("filters"), attributes.Int("groups")});
}

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "conv2d",
    {"cross-correlation with a window: [C, H, W] -> [filters, H', W']; weights "
     "[filters, C / groups, KH, KW]",
     Conv2dAttributes(
         {IntAttr("filters", "output channels").AtLeast(1).AtMost(1 << 30),
          IntAttr("groups",
                  "runs of channels, each of which sees its own alone; divides "
                  "C and filters")
              .AtLeast(1)
              .Default(int64_t{1})}),
     &Create});

}  // namespace
}  // namespace muster
