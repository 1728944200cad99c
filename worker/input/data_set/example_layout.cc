#include "worker/input/data_set/example_layout.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

absl::StatusOr<ExampleLayout> FitExample(absl::Span<const int64_t> found,
                                         const Shape& input_shape,
                                         const std::string& source) {
  int64_t values = 1;
  for (const int64_t dim : found) values *= dim;
  if (values != input_shape.num_elements()) {
    const std::string text = absl::StrJoin(found, ", ");
    return absl::InvalidArgumentError(absl::StrCat(
        "opening a data set: model.input_shape is ", input_shape.ToString(),
        ", the examples of ", source, " are [", text,
        "]; set model.input_shape to as many values, or let the model read "
        "other data"));
  }
  if (found.size() != 3 || input_shape.rank() != 3) {
    return ExampleLayout::kAsModel;
  }
  const std::vector<int64_t> last = {input_shape.dim(1), input_shape.dim(2),
                                     input_shape.dim(0)};
  const bool as_model = found[0] == input_shape.dim(0) &&
                        found[1] == input_shape.dim(1) &&
                        found[2] == input_shape.dim(2);
  return !as_model && absl::MakeConstSpan(last) == found
             ? ExampleLayout::kChannelsLast
             : ExampleLayout::kAsModel;
}

void ScaleBytes(absl::Span<const uint8_t> bytes, float* dst) {
  for (const uint8_t byte : bytes) *dst++ = static_cast<float>(byte) / 255.0f;
}

}  // namespace muster
