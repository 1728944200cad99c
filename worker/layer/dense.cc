#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/layer/layer.h"
#include "worker/layer/weight_attributes.h"

namespace muster {
namespace {

class Dense : public Layer {
 public:
  Dense(const DenseDesc& desc, WeightOptions options,
        std::vector<ParameterDef> parameters)
      : Layer({desc.dst_features}, std::move(parameters)),
        desc_(desc),
        options_(std::move(options)) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& attributes, absl::Span<const Shape> inputs) {
    if (inputs[0].rank() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("needs an input [features], found ",
                       inputs[0].ToString(), "; add a flatten layer before"));
    }
    const WeightOptions options = ReadWeightOptions(attributes);
    DenseDesc desc;
    desc.src_features = inputs[0].dim(0);
    desc.dst_features = attributes.Int("units");
    desc.has_bias = options.use_bias;
    RETURN_IF_ERROR(desc.Validate());
    return std::make_unique<Dense>(
        desc, options, WeightParameters(options, desc.weights_shape()));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    DenseDesc desc = desc_;
    desc.batch = batch_size;
    return LowerWeighted(desc, options_);
  }

 private:
  const DenseDesc desc_;
  const WeightOptions options_;
};

std::vector<AttrDef> Table() {
  std::vector<AttrDef> table = {
      IntAttr("units", "output features").AtLeast(1).AtMost(1 << 30)};
  for (AttrDef& attr : WeightAttributes()) table.push_back(std::move(attr));
  return table;
}

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "dense", {"x * transpose(weights) + bias: [I] -> [units]; weights "
              "[units, I]",
              Table(), &Dense::Create});

}  // namespace
}  // namespace muster
