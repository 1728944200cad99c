#include "worker/input/image/example_pixels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace muster {
namespace {

// The values that become 0 and 255.
struct Range {
  float least = 0;
  float largest = 1;
};

Range RangeOf(absl::Span<const float> values) {
  Range found{std::numeric_limits<float>::infinity(),
              -std::numeric_limits<float>::infinity()};
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    found.least = std::min(found.least, value);
    found.largest = std::max(found.largest, value);
  }
  const Range unit;
  // Also if there are none.
  if (found.least >= unit.least && found.largest <= unit.largest) return unit;
  return found;
}

// In double: the difference of two floats may be no float.
uint8_t PixelOf(float value, const Range& range) {
  if (!std::isfinite(value) || range.least == range.largest) return 0;
  const double part =
      (double{value} - range.least) / (double{range.largest} - range.least);
  return static_cast<uint8_t>(std::lround(255 * part));
}

}  // namespace

bool IsImage(const Shape& example) {
  return example.rank() == 3 && (example.dim(0) == 1 || example.dim(0) == 3);
}

std::vector<uint8_t> ExamplePixels(absl::Span<const float> values,
                                   const Shape& shape) {
  const auto channels = static_cast<size_t>(shape.dim(0));
  const size_t plane = values.size() / channels;
  const Range range = RangeOf(values);
  std::vector<uint8_t> pixels(values.size());
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < plane; ++i) {
      pixels[i * channels + c] = PixelOf(values[c * plane + i], range);
    }
  }
  return pixels;
}

}  // namespace muster
