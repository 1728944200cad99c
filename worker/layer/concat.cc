#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/layer/batched_shape.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

class Concat : public Layer {
 public:
  Concat(Shape output, absl::Span<const Shape> inputs)
      : Layer(std::move(output)), inputs_(inputs.begin(), inputs.end()) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    std::vector<int64_t> dims(inputs[0].dims().begin(), inputs[0].dims().end());
    dims[0] = 0;
    for (const Shape& input : inputs) {
      if (input.dims().subspan(1) != inputs[0].dims().subspan(1)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "needs inputs that differ in their channels only, found ",
            inputs[0].ToString(), " and ", input.ToString()));
      }
      dims[0] += input.dim(0);
    }
    ASSIGN_OR_RETURN(Shape output, Shape::Create(dims));
    return std::make_unique<Concat>(std::move(output), inputs);
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    ConcatDesc desc;
    for (const Shape& input : inputs_) {
      desc.srcs.push_back(BatchedShape(batch_size, input));
    }
    return {{desc, {}}};
  }

 private:
  const std::vector<Shape> inputs_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "concat", {"joins two or more inputs along their channels (or features)",
               {},
               &Concat::Create,
               /*min_inputs=*/2,
               /*max_inputs=*/std::numeric_limits<int>::max()});

}  // namespace
}  // namespace muster
