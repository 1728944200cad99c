#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/batched_shape.h"
#include "worker/layer/layer.h"

namespace muster {
namespace {

class Add : public Layer {
 public:
  Add(const Shape& input, int num_inputs)
      : Layer(input), num_inputs_(num_inputs) {}

  static absl::StatusOr<std::unique_ptr<Layer>> Create(
      const Attributes& /*attributes*/, absl::Span<const Shape> inputs) {
    for (const Shape& input : inputs) {
      if (input == inputs[0]) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("needs inputs of one shape, found ",
                       inputs[0].ToString(), " and ", input.ToString()));
    }
    return std::make_unique<Add>(inputs[0], static_cast<int>(inputs.size()));
  }

  std::vector<LayerOperation> Lower(int64_t batch_size) const override {
    return {
        {AddDesc{num_inputs_, BatchedShape(batch_size, output_shape())}, {}}};
  }

 private:
  const int num_inputs_;
};

[[maybe_unused]] const bool kRegistered = LayerRegistry::Register(
    "add", {"sum of two or more inputs of one shape",
            {},
            &Add::Create,
            /*min_inputs=*/2,
            /*max_inputs=*/std::numeric_limits<int>::max()});

}  // namespace
}  // namespace muster
