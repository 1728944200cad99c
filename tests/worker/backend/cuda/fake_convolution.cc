#include "tests/worker/backend/cuda/fake_convolution.h"

#include <cstddef>

#include "tests/worker/backend/cuda/fake_numbers.h"

namespace muster {
namespace {

float LoadElement(cudnnDataType_t type, const void* memory, int64_t i) {
  if (type == CUDNN_DATA_FLOAT) return static_cast<const float*>(memory)[i];
  return FromBf16(static_cast<const uint16_t*>(memory)[i]);
}

void StoreElement(cudnnDataType_t type, float value, void* memory, int64_t i) {
  if (type == CUDNN_DATA_FLOAT) {
    static_cast<float*>(memory)[i] = value;
  } else {
    static_cast<uint16_t*>(memory)[i] = ToBf16(value);
  }
}

// Calls visit(i, offset) for each element i in the order of the sizes.
template <typename Visit>
void ForEach(const FakeConvolution::Tensor& tensor, Visit visit) {
  const auto& sizes = tensor.sizes;
  int64_t i = 0;
  for (int64_t n = 0; n < sizes[0]; ++n)
    for (int64_t c = 0; c < sizes[1]; ++c)
      for (int64_t h = 0; h < sizes[2]; ++h)
        for (int64_t w = 0; w < sizes[3]; ++w)
          visit(i++, tensor.OffsetOf(n, c, h, w));
}

}  // namespace

int64_t FakeConvolution::Tensor::OffsetOf(int64_t n, int64_t c, int64_t h,
                                          int64_t w) const {
  if (format == CUDNN_TENSOR_NCHW) {
    return ((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w;
  }
  return ((n * sizes[2] + h) * sizes[3] + w) * sizes[1] + c;
}

std::vector<float> FakeConvolution::Tensor::Load(const void* memory) const {
  std::vector<float> values(elements());
  ForEach(*this, [&](int64_t i, int64_t offset) {
    values[i] = LoadElement(type, memory, offset);
  });
  return values;
}

void FakeConvolution::Tensor::Store(const std::vector<float>& values,
                                    float alpha, float beta,
                                    void* memory) const {
  ForEach(*this, [&](int64_t i, int64_t offset) {
    float value = alpha * values[i];
    if (beta != 0) value += beta * LoadElement(type, memory, offset);
    StoreElement(type, value, memory, offset);
  });
}

std::array<int64_t, 4> FakeConvolution::YSizes() const {
  const int64_t height = x.sizes[2] + 2 * window.pad_h - w.sizes[2];
  const int64_t width = x.sizes[3] + 2 * window.pad_w - w.sizes[3];
  if (height < 0 || width < 0) return {};
  return {x.sizes[0], w.sizes[0], height / window.stride_h + 1,
          width / window.stride_w + 1};
}

std::vector<float> FakeConvolution::LoadFactor(const Tensor& tensor,
                                               const void* memory) const {
  std::vector<float> values = tensor.Load(memory);
  if (!tf32) return values;
  for (float& value : values) value = RoundToTf32(value);
  return values;
}

// visit(x_index, w_index, y_index), indices in the order of the sizes.
template <typename Visit>
void FakeConvolution::ForEachProduct(Visit visit) const {
  const auto [filters, channels, rows, columns] = w.sizes;
  const int64_t filters_of_group = filters / groups;
  int64_t to = 0;
  for (int64_t n = 0; n < y.sizes[0]; ++n)
    for (int64_t k = 0; k < filters; ++k)
      for (int64_t p = 0; p < y.sizes[2]; ++p)
        for (int64_t q = 0; q < y.sizes[3]; ++q, ++to)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t s = 0; s < columns; ++s) {
                const int64_t h = p * window.stride_h - window.pad_h + r;
                const int64_t v = q * window.stride_w - window.pad_w + s;
                if (h < 0 || h >= x.sizes[2] || v < 0 || v >= x.sizes[3]) {
                  continue;
                }
                const int64_t from = k / filters_of_group * channels + c;
                visit(
                    ((n * x.sizes[1] + from) * x.sizes[2] + h) * x.sizes[3] + v,
                    ((k * channels + c) * rows + r) * columns + s, to);
              }
}

std::vector<float> FakeConvolution::Forward(const void* x_memory,
                                            const void* w_memory) const {
  const std::vector<float> xs = LoadFactor(x, x_memory);
  const std::vector<float> ws = LoadFactor(w, w_memory);
  std::vector<float> sums(y.elements());
  ForEachProduct(
      [&](int64_t i, int64_t j, int64_t to) { sums[to] += xs[i] * ws[j]; });
  return sums;
}

std::vector<float> FakeConvolution::BackwardData(const void* w_memory,
                                                 const void* dy_memory) const {
  const std::vector<float> ws = LoadFactor(w, w_memory);
  const std::vector<float> dys = LoadFactor(y, dy_memory);
  std::vector<float> sums(x.elements());
  ForEachProduct([&](int64_t i, int64_t j, int64_t from) {
    sums[i] += ws[j] * dys[from];
  });
  return sums;
}

std::vector<float> FakeConvolution::BackwardFilter(
    const void* x_memory, const void* dy_memory) const {
  const std::vector<float> xs = LoadFactor(x, x_memory);
  const std::vector<float> dys = LoadFactor(y, dy_memory);
  std::vector<float> sums(w.elements());
  ForEachProduct([&](int64_t i, int64_t j, int64_t from) {
    sums[j] += xs[i] * dys[from];
  });
  return sums;
}

}  // namespace muster
