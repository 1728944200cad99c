#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/layer/layer.h"
#include "worker/layer/window_attributes.h"

namespace muster {
namespace {

class AveragePool : public Layer {
 public:
  AveragePool(const Shape& input, const WindowDesc& window)
      : Layer({input.dim(0), window.dst_h(input.dim(1)),
               window.dst_w(input.dim(2))}),
        input_(input),
        window_(window) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    ASSIGN_OR_RETURN(const WindowDesc window,
                     MakeWindow(attributes, WindowUse::kPooling, inputs[0]));
    return std::make_unique<AveragePool>(inputs[0], window);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    PoolDesc desc;
    desc.kind = PoolKind::kAverage;
    desc.batch = batch_size;
    desc.channels = input_.dim(0);
    desc.height = input_.dim(1);
    desc.width = input_.dim(2);
    desc.window = window_;
    return {{desc, {}}};
  }

 private:
  const Shape input_;
  const WindowDesc window_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "average_pool",
    {"mean of each window, without its padding",
     WindowAttributes(WindowUse::kPooling), &AveragePool::Create});

}  // namespace
}  // namespace muster
