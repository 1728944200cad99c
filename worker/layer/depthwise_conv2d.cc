#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/conv2d_layer.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

absl::StatusOr<std::unique_ptr<Layer>> Create(const Attributes& attributes,
                                              absl::Span<const Shape> inputs) {
  if (inputs[0].rank() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs an input [channels, height, width], found ",
                     inputs[0].ToString()));
  }
  const int64_t channels = inputs[0].dim(0);
  const int64_t multiplier = attributes.Int("multiplier");
  if (channels > INT64_MAX / multiplier) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'multiplier': ", multiplier, " times ",
                     channels, " channels are too many"));
  }
  return Conv2dLayer::Create(attributes, inputs[0],
                             {channels * multiplier, /*groups=*/channels});
}

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "depthwise_conv2d",
    {"conv2d with a group for each channel: [C, H, W] -> [C multiplier, H', "
     "W']; weights [C multiplier, 1, KH, KW]",
     Conv2dAttributes({IntAttr("multiplier", "output channels of each channel")
                           .AtLeast(1)
                           .AtMost(1 << 20)
                           .Default(int64_t{1})}),
     &Create});

}  // namespace
}  // namespace muster
