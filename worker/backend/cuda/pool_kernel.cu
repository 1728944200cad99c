#include <algorithm>
#include <cmath>

#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/cuda/pool_kernel.h"

namespace muster {
namespace {

constexpr int32_t kNone = -1;

// Where an element is, and its plane in the other tensor: there the pixel (y,
// x) is at origin + (y * width + x) * inner.
struct Place {
  int64_t y, x;
  int64_t origin;
};

__device__ Place PlaceOf(int64_t index, int64_t inner, int64_t height,
                         int64_t width, int64_t other_pixels) {
  const int64_t pixel = index / inner % (height * width);
  const int64_t outer = index / (inner * height * width);
  return {pixel / width, pixel % width,
          outer * other_pixels * inner + index % inner};
}

__device__ Place PlaceInDst(const PoolShape& s, int64_t index) {
  return PlaceOf(index, s.inner, s.dst_height, s.dst_width, s.height * s.width);
}

__device__ Place PlaceInSrc(const PoolShape& s, int64_t index) {
  return PlaceOf(index, s.inner, s.height, s.width, s.dst_height * s.dst_width);
}

// Half-open, along one dimension.
struct Run {
  int64_t begin, end;

  __device__ int64_t size() const { return end - begin; }
};

// The pixels of src under window `at`, less the padding.
__device__ Run PixelsUnder(int64_t at, int64_t kernel, int64_t stride,
                           int64_t pad, int64_t size) {
  const int64_t begin = at * stride - pad;
  return {std::max<int64_t>(begin, 0), std::min(begin + kernel, size)};
}

__device__ Run RowsUnder(const PoolShape& s, int64_t y) {
  const WindowDesc& w = s.window;
  return PixelsUnder(y, w.kernel_h, w.stride_h, w.pad_top, s.height);
}

__device__ Run ColumnsUnder(const PoolShape& s, int64_t x) {
  const WindowDesc& w = s.window;
  return PixelsUnder(x, w.kernel_w, w.stride_w, w.pad_left, s.width);
}

// The windows, of `count`, that are over pixel `at` of src.
__device__ Run WindowsOver(int64_t at, int64_t kernel, int64_t stride,
                           int64_t pad, int64_t count) {
  const int64_t first = at + pad - kernel + 1;
  return {first <= 0 ? 0 : (first + stride - 1) / stride,
          std::min((at + pad) / stride + 1, count)};
}

// Calls visit(y, x) for each window over the pixel at `at`, in row-major order.
template <typename Visit>
__device__ void ForEachWindowOver(const PoolShape& s, const Place& at,
                                  Visit visit) {
  const WindowDesc& w = s.window;
  const Run rows =
      WindowsOver(at.y, w.kernel_h, w.stride_h, w.pad_top, s.dst_height);
  const Run columns =
      WindowsOver(at.x, w.kernel_w, w.stride_w, w.pad_left, s.dst_width);
  for (int64_t y = rows.begin; y < rows.end; ++y)
    for (int64_t x = columns.begin; x < columns.end; ++x) visit(y, x);
}

// Calls visit(pixel, value) for each pixel under the window at `at`, in
// row-major order.
template <typename Visit>
__device__ void ForEachPixelUnder(const PoolShape& s, const Place& at,
                                  const float* src, Visit visit) {
  const Run rows = RowsUnder(s, at.y);
  const Run columns = ColumnsUnder(s, at.x);
  for (int64_t y = rows.begin; y < rows.end; ++y)
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      const int64_t pixel = y * s.width + x;
      visit(pixel, src[at.origin + pixel * s.inner]);
    }
}

__global__ void MaxPoolForwardKernel(PoolShape s, int64_t elements,
                                     bool relu_before, const float* src,
                                     float* dst, int32_t* argmax) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    float largest = relu_before ? 0 : -INFINITY;
    int32_t taken = kNone;
    ForEachPixelUnder(s, PlaceInDst(s, i), src, [&](int64_t pixel, float v) {
      // The first NaN stays.
      if (v <= largest || largest != largest) return;
      largest = v;
      taken = static_cast<int32_t>(pixel);
    });
    dst[i] = largest;
    if (argmax != nullptr) argmax[i] = taken;
  }
}

__global__ void MaxPoolBackwardKernel(PoolShape s, int64_t elements,
                                      const int32_t* argmax,
                                      const float* diff_dst, float* diff_src) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    const Place at = PlaceInSrc(s, i);
    float sum = 0;
    ForEachWindowOver(s, at, [&](int64_t y, int64_t x) {
      const int64_t from = at.origin + (y * s.dst_width + x) * s.inner;
      if (argmax[from] == at.y * s.width + at.x) sum += diff_dst[from];
    });
    diff_src[i] = sum;
  }
}

__global__ void AveragePoolForwardKernel(PoolShape s, int64_t elements,
                                         const float* src, float* dst) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    float sum = 0;
    int64_t count = 0;
    ForEachPixelUnder(s, PlaceInDst(s, i), src, [&](int64_t, float v) {
      sum += v;
      ++count;
    });
    dst[i] = sum / static_cast<float>(count);
  }
}

__global__ void AveragePoolBackwardKernel(PoolShape s, int64_t elements,
                                          const float* diff_dst,
                                          float* diff_src) {
  for (int64_t i = GridIndex(); i < elements; i += GridSize()) {
    const Place at = PlaceInSrc(s, i);
    float sum = 0;
    ForEachWindowOver(s, at, [&](int64_t y, int64_t x) {
      const int64_t count = RowsUnder(s, y).size() * ColumnsUnder(s, x).size();
      sum += diff_dst[at.origin + (y * s.dst_width + x) * s.inner] /
             static_cast<float>(count);
    });
    diff_src[i] = sum;
  }
}

int64_t SrcElements(const PoolShape& s) {
  return s.outer * s.height * s.width * s.inner;
}

int64_t DstElements(const PoolShape& s) {
  return s.outer * s.dst_height * s.dst_width * s.inner;
}

}  // namespace

absl::Status MaxPoolForward(const KernelStream& to, const PoolShape& shape,
                            bool relu_before, const float* src, float* dst,
                            int32_t* argmax) {
  const int64_t elements = DstElements(shape);
  return Launch(to, "MaxPoolForward", MaxPoolForwardKernel, BlocksFor(elements),
                kBlockThreads, shape, elements, relu_before, src, dst, argmax);
}

absl::Status MaxPoolBackward(const KernelStream& to, const PoolShape& shape,
                             const int32_t* argmax, const float* diff_dst,
                             float* diff_src) {
  const int64_t elements = SrcElements(shape);
  return Launch(to, "MaxPoolBackward", MaxPoolBackwardKernel,
                BlocksFor(elements), kBlockThreads, shape, elements, argmax,
                diff_dst, diff_src);
}

absl::Status AveragePoolForward(const KernelStream& to, const PoolShape& shape,
                                const float* src, float* dst) {
  const int64_t elements = DstElements(shape);
  return Launch(to, "AveragePoolForward", AveragePoolForwardKernel,
                BlocksFor(elements), kBlockThreads, shape, elements, src, dst);
}

absl::Status AveragePoolBackward(const KernelStream& to, const PoolShape& shape,
                                 const float* diff_dst, float* diff_src) {
  const int64_t elements = SrcElements(shape);
  return Launch(to, "AveragePoolBackward", AveragePoolBackwardKernel,
                BlocksFor(elements), kBlockThreads, shape, elements, diff_dst,
                diff_src);
}

}  // namespace muster
