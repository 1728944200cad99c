#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

class GlobalMaxPool : public Layer {
 public:
  explicit GlobalMaxPool(const Shape& input)
      : Layer({input.dim(0)}), input_(input) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    if (inputs[0].rank() != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("needs an input [channels, height, width], found ",
                       inputs[0].ToString()));
    }
    return std::make_unique<GlobalMaxPool>(inputs[0]);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    PoolDesc desc;
    desc.kind = PoolKind::kMax;
    desc.batch = batch_size;
    desc.channels = input_.dim(0);
    desc.height = desc.window.kernel_h = input_.dim(1);
    desc.width = desc.window.kernel_w = input_.dim(2);
    return {{desc, {}}, {ReshapeDesc{{batch_size, desc.channels}}, {}}};
  }

 private:
  const Shape input_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "global_max_pool", {"largest value of each channel: [C, H, W] -> [C]",
                        {},
                        &GlobalMaxPool::Create});

}  // namespace
}  // namespace muster
