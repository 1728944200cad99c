#include "worker/layer/pool_layer.h"

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/layer/window_attributes.h"

namespace muster {
namespace {

PoolDesc Describe(PoolKind kind, int64_t batch_size, const Shape& input,
                  const WindowDesc& window) {
  PoolDesc desc;
  desc.kind = kind;
  desc.batch = batch_size;
  desc.channels = input.dim(0);
  desc.height = input.dim(1);
  desc.width = input.dim(2);
  desc.window = window;
  return desc;
}

}  // namespace

PoolLayer::PoolLayer(PoolKind kind, const Shape& input,
                     const WindowDesc& window)
    : Layer({input.dim(0), window.dst_h(input.dim(1)),
             window.dst_w(input.dim(2))}),
      kind_(kind),
      input_(input),
      window_(window) {}

absl::StatusOr<std::unique_ptr<Layer>> PoolLayer::CreateKind(
    PoolKind kind, const Attributes& attributes, const Shape& input) {
  ASSIGN_OR_RETURN(const WindowDesc window,
                   MakeWindow(attributes, WindowUse::kPooling, input));
  return absl::WrapUnique(new PoolLayer(kind, input, window));
}

std::vector<LayerOperation> PoolLayer::Lower(int64_t batch_size) const {
  return {{Describe(kind_, batch_size, input_, window_), {}}};
}

GlobalPoolLayer::GlobalPoolLayer(PoolKind kind, const Shape& input)
    : Layer({input.dim(0)}), kind_(kind), input_(input) {}

absl::StatusOr<std::unique_ptr<Layer>> GlobalPoolLayer::CreateKind(
    PoolKind kind, const Shape& input) {
  if (input.rank() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "needs an input [channels, height, width], found ", input.ToString()));
  }
  return absl::WrapUnique(new GlobalPoolLayer(kind, input));
}

std::vector<LayerOperation> GlobalPoolLayer::Lower(int64_t batch_size) const {
  WindowDesc window;
  window.kernel_h = input_.dim(1);
  window.kernel_w = input_.dim(2);
  return {{Describe(kind_, batch_size, input_, window), {}},
          {ReshapeDesc{{batch_size, input_.dim(0)}}, {}}};
}

}  // namespace muster
