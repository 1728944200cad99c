#include "worker/input/image/pixel_scaling.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace muster {
namespace {

// The compiler makes vector instructions of a loop over so many values, at -O2
// of no other.
constexpr size_t kRun = 16;
// Sums that stay in the first cache while the rows of a window pass by.
constexpr size_t kBlock = 1024;

// Adds two rows at once, so that sums are loaded and stored half as often.
void AddRows(const uint8_t* __restrict upper, float upper_weight,
             const uint8_t* __restrict lower, float lower_weight, size_t size,
             float* __restrict sums) {
  size_t i = 0;
  for (; i + kRun <= size; i += kRun) {
    for (size_t j = 0; j < kRun; ++j) {
      sums[i + j] += upper_weight * static_cast<float>(upper[i + j]) +
                     lower_weight * static_cast<float>(lower[i + j]);
    }
  }
  for (; i < size; ++i) {
    sums[i] += upper_weight * static_cast<float>(upper[i]) +
               lower_weight * static_cast<float>(lower[i]);
  }
}

// The sum of many weights may be a little above 1.
void RoundToBytes(const float* __restrict src, size_t size,
                  uint8_t* __restrict dst) {
  const auto rounded = [](float value) {
    return static_cast<uint8_t>(
        static_cast<int32_t>(std::min(value, 255.0f) + 0.5f));
  };
  size_t i = 0;
  for (; i + kRun <= size; i += kRun) {
    for (size_t j = 0; j < kRun; ++j) dst[i + j] = rounded(src[i + j]);
  }
  for (; i < size; ++i) dst[i] = rounded(src[i]);
}

}  // namespace

void PixelScaling::Axis::AddWindow(double centre, double reach) {
  // Truncation, as Pillow's; below 0 lies nothing.
  int first = std::max(static_cast<int>(centre - reach + 0.5), 0);
  const int end = std::min(static_cast<int>(centre + reach + 0.5), src);
  const auto weight = [&](int i) {
    return std::max(1 - std::abs((i + 0.5 - centre) / reach), 0.0);
  };
  double sum = 0;
  for (int i = first; i < end; ++i) sum += weight(i);
  // The ends may lie on the border of the triangle, and count nothing.
  while (first + 1 < end && weight(first) == 0) ++first;
  Window window = {first, 0, weights.size()};
  for (int i = first; i < end && (i == first || weight(i) > 0); ++i) {
    weights.push_back(static_cast<float>(weight(i) / sum));
    ++window.count;
  }
  windows.push_back(window);
}

void PixelScaling::Axis::Fit(int src_size, int dst_size) {
  if (src == src_size && dst == dst_size) return;
  src = src_size;
  dst = dst_size;
  windows.clear();
  weights.clear();
  const double scale = static_cast<double>(src) / dst;
  for (int i = 0; i < dst; ++i) {
    AddWindow((i + 0.5) * scale, std::max(scale, 1.0));
  }
}

void PixelScaling::MeanOfRows(const uint8_t* src, const Window& window,
                              size_t size) {
  const float* const weights = &rows_.weights[window.weights];
  for (size_t begin = 0; begin < size; begin += kBlock) {
    const size_t count = std::min(kBlock, size - begin);
    float* const sums = line_.data() + begin;
    std::fill_n(sums, count, 0.0f);
    const uint8_t* row = src + window.first * size + begin;
    int i = 0;
    for (; i + 1 < window.count; i += 2, row += 2 * size) {
      AddRows(row, weights[i], row + size, weights[i + 1], count, sums);
    }
    if (i < window.count) AddRows(row, weights[i], row, 0, count, sums);
  }
}

template <int kChannels>
void PixelScaling::Across() {
  // Three channels as four values: the next pixel takes the fourth's place.
  constexpr int kValues = kChannels == 3 ? 4 : kChannels;
  float* dst = scaled_line_.data();
  for (const Window& window : columns_.windows) {
    const float* const weights = &columns_.weights[window.weights];
    const float* pixel = line_.data() + kChannels * window.first;
    float sums[kValues] = {};
    for (int i = 0; i < window.count; ++i, pixel += kChannels) {
      for (int c = 0; c < kValues; ++c) sums[c] += weights[i] * pixel[c];
    }
    for (int c = 0; c < kValues; ++c) dst[c] = sums[c];
    dst += kChannels;
  }
}

void PixelScaling::Scale(const uint8_t* src, const PixelSize& src_size,
                         const PixelSize& dst_size, int channels,
                         uint8_t* dst) {
  assert(channels == 1 || channels == 3);
  rows_.Fit(src_size.height, dst_size.height);
  columns_.Fit(src_size.width, dst_size.width);
  const auto values = [channels](int width) {
    return static_cast<size_t>(width) * static_cast<size_t>(channels);
  };
  const size_t src_values = values(src_size.width);
  const size_t dst_values = values(dst_size.width);
  // And the fourth value of a last pixel of three.
  line_.resize(src_values + 1);
  scaled_line_.resize(dst_values + 1);
  for (const Window& window : rows_.windows) {
    MeanOfRows(src, window, src_values);
    channels == 3 ? Across<3>() : Across<1>();
    RoundToBytes(scaled_line_.data(), dst_values, dst);
    dst += dst_values;
  }
}

}  // namespace muster
