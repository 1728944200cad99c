#ifndef WORKER_INPUT_DATA_SET_EXAMPLE_LAYOUT_H_
#define WORKER_INPUT_DATA_SET_EXAMPLE_LAYOUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace muster {

// How the values of an example lie in a file.
enum class ExampleLayout {
  // As the model reads them.
  kAsModel,
  // The channels of each pixel together: [H, W, C] for a model's [C, H, W].
  kChannelsLast,
};

// The layout of examples of shape `found`, read as `input_shape`. As many
// values of another shape are reshaped ([28, 28] as [1, 28, 28] or [784]), but
// [H, W, C] with the model's C, H and W is kChannelsLast.
// Errors: InvalidArgument (another number of values), naming `source`, both
// shapes and what to do.
absl::StatusOr<ExampleLayout> FitExample(absl::Span<const int64_t> found,
                                         const Shape& input_shape,
                                         const std::string& source);

// Writes each byte as byte / 255.
void ScaleBytes(absl::Span<const uint8_t> bytes, float* dst);

// Copies an example of `shape`, [C, H, W], from channels last to channels
// first, and divides each value by `divisor`.
//   src [H, W, C], dst [C, H, W]
template <typename T>
void ToChannelsFirst(const T* src, const Shape& shape, float divisor,
                     float* dst) {
  const int64_t channels = shape.dim(0);
  const int64_t pixels = shape.dim(1) * shape.dim(2);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) {
      *dst++ = static_cast<float>(src[p * channels + c]) / divisor;
    }
  }
}

}  // namespace muster

#endif  // WORKER_INPUT_DATA_SET_EXAMPLE_LAYOUT_H_
