#ifndef WORKER_INPUT_IMAGE_EXAMPLE_PIXELS_H_
#define WORKER_INPUT_IMAGE_EXAMPLE_PIXELS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace muster {

// Is an example of this shape an image: [C, H, W], of 1 or 3 channels?
bool IsImage(const Shape& example);

// The example as pixels to look at, [H, W, C]: 0 to 255 stands for 0 to 1 if
// all values lie there, else for the least to the largest of them. Those that
// are not finite count as no values, and are 0.
//   values [C, H, W]
// REQUIRES: IsImage(shape), and as many values as it has.
std::vector<uint8_t> ExamplePixels(absl::Span<const float> values,
                                   const Shape& shape);

}  // namespace muster

#endif  // WORKER_INPUT_IMAGE_EXAMPLE_PIXELS_H_
