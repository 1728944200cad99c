// The rule itself, beside PyTorch's numbers, is in resize_test.cc.
#include "worker/input/map/bilinear.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/input/map/image_size.h"

namespace muster {
namespace {

struct Scaling {
  ImageSize src;
  ImageSize dst;
};

// Shorter and longer than runs of 16, smaller and larger than the image; lines
// that are left out, used twice and used by several; and the same size.
const Scaling kScalings[] = {{{5, 7}, {3, 4}},    {{3, 4}, {7, 9}},
                             {{40, 33}, {9, 17}}, {{9, 17}, {40, 33}},
                             {{1, 1}, {2, 20}},   {{30, 50}, {1, 1}},
                             {{6, 16}, {6, 16}},  {{20, 48}, {19, 32}}};

std::vector<uint8_t> SomeBytes(int64_t size) {
  std::vector<uint8_t> bytes;
  uint32_t state = 1;
  for (int64_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    bytes.push_back(static_cast<uint8_t>(state >> 24));
  }
  return bytes;
}

// Where a pixel of the result lies in the image, and how near the second of
// its neighbours is.
struct Place {
  int64_t first;
  int64_t second;
  float weight;
};

Place Find(int64_t i, int64_t src_size, int64_t dst_size) {
  const float scale =
      static_cast<float>(src_size) / static_cast<float>(dst_size);
  const float place =
      std::max(scale * (static_cast<float>(i) + 0.5f) - 0.5f, 0.0f);
  const auto first = std::min(static_cast<int64_t>(place), src_size - 1);
  return {first, std::min(first + 1, src_size - 1),
          std::min(place - static_cast<float>(first), 1.0f)};
}

float Mean(float first, float second, float weight) {
  return (1 - weight) * first + weight * second;
}

// Pixel (y, x) of the result.
template <typename T>
float PixelOf(const std::vector<T>& src, const Scaling& scaling, int64_t y,
              int64_t x) {
  const Place row = Find(y, scaling.src.rows, scaling.dst.rows);
  const Place column = Find(x, scaling.src.columns, scaling.dst.columns);
  const auto across = [&](int64_t line) {
    const auto at = [&](int64_t i) {
      return static_cast<float>(src[line * scaling.src.columns + i]);
    };
    return Mean(at(column.first), at(column.second), column.weight);
  };
  return Mean(across(row.first), across(row.second), row.weight);
}

// Calls check(place in [H', W'], value) with what PixelOf finds.
template <typename T, typename Check>
void ForEachPixel(const std::vector<T>& src, const Scaling& scaling,
                  Check check) {
  size_t place = 0;
  for (int64_t y = 0; y < scaling.dst.rows; ++y) {
    for (int64_t x = 0; x < scaling.dst.columns; ++x) {
      check(place++, PixelOf(src, scaling, y, x));
    }
  }
}

int64_t Pixels(const ImageSize& size) { return size.rows * size.columns; }

TEST(BilinearTest, ScalesBytesAndFloatsToTheBitsOfEachPixel) {
  for (const Scaling& scaling : kScalings) {
    const Bilinear bilinear(scaling.src, scaling.dst);
    const std::vector<uint8_t> bytes = SomeBytes(Pixels(scaling.src));
    std::vector<uint8_t> scaled_bytes(Pixels(scaling.dst));
    bilinear.Scale(bytes.data(), scaled_bytes.data());
    std::vector<float> floats(bytes.begin(), bytes.end());
    for (float& value : floats) value = value / 7 - 10;
    std::vector<float> scaled_floats(Pixels(scaling.dst));
    bilinear.Scale(floats.data(), scaled_floats.data());
    ForEachPixel(bytes, scaling, [&](size_t i, float value) {
      ASSERT_EQ(scaled_bytes[i], static_cast<uint8_t>(value + 0.5f)) << i;
    });
    ForEachPixel(floats, scaling, [&](size_t i, float value) {
      ASSERT_EQ(scaled_floats[i], value) << i;
    });
  }
}

}  // namespace
}  // namespace muster
