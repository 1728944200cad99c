#include "worker/backend/cpu/winograd5x5_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/backend/cpu/winograd5x5_kernel.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"
#include "worker/backend/cpu/matrix_product-inl.h"
#include "worker/backend/cpu/winograd5x5_transforms-inl.h"

#ifndef WORKER_BACKEND_CPU_WINOGRAD5X5_KERNEL_ONCE_
#define WORKER_BACKEND_CPU_WINOGRAD5X5_KERNEL_ONCE_
namespace muster {
namespace {

constexpr int64_t kSide = 6;    // of a tile's sources, and of the points
constexpr int64_t kWindow = 5;  // of the weights
constexpr int64_t kMostLanes = 16;
constexpr int64_t kAlignedFloats = 16;

// The sources beyond the border.
alignas(64) constexpr float kZeros[kMostLanes] = {};

// Between one point's values of a chunk and the next one's: not a multiple of
// 4096 bytes, so that a tile's 36 values do not meet in one set of the L1
// cache.
int64_t PointStride(int64_t channels) {
  return kWinogradTiles * channels + kAlignedFloats;
}

// Which tile of dst: its image and the first row and column of its dst.
struct TilePlace {
  TilePlace(const Winograd5x5Shape& shape, int64_t tile)
      : image(tile / (shape.tile_rows() * shape.tile_columns())),
        row(tile / shape.tile_columns() % shape.tile_rows() * 2),
        column(tile % shape.tile_columns() * 2) {}
  int64_t image, row, column;
};

}  // namespace
}  // namespace muster
#endif  // WORKER_BACKEND_CPU_WINOGRAD5X5_KERNEL_ONCE_

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE int64_t LanesOf(D d) {
  return static_cast<int64_t>(hn::Lanes(d));
}

// Calls body(d) with the vectors that fit in a block of channels.
template <class Body>
HWY_INLINE void WithBlockVectors(const Winograd5x5Shape& shape, Body body) {
  if (shape.block == 8) {
    body(hn::CappedTag<float, 8>());
  } else {
    body(hn::CappedTag<float, 16>());
  }
}

// A tile's sources of one vector of channels, from `plane`, at the points:
// first down its columns, then along its rows.
template <class D>
HWY_INLINE void TransformSrcVector(D d, const Winograd5x5Shape& shape,
                                   const float* plane, int64_t top,
                                   int64_t left, float* to, int64_t stride) {
  HWY_ALIGN float half[kWinogradPoints * kMostLanes];
  for (int64_t x = 0; x < kSide; ++x) {
    const bool is_column = left + x >= 0 && left + x < shape.src_width;
    const auto row = [&](int64_t y) {
      const bool inside =
          is_column && top + y >= 0 && top + y < shape.src_height;
      const int64_t at = ((top + y) * shape.src_width + left + x) * shape.block;
      return hn::LoadU(d, inside ? plane + at : kZeros);
    };
    const Six<hn::Vec<D>> column = {row(0), row(1), row(2),
                                    row(3), row(4), row(5)};
    StoreSix(d, TransformSrc(d, column), half + x * kMostLanes,
             kSide * kMostLanes);
  }
  for (int64_t y = 0; y < kSide; ++y) {
    const auto row = LoadSix(d, half + y * kSide * kMostLanes, kMostLanes);
    StoreSix(d, TransformSrc(d, row), to + y * kSide * stride, stride);
  }
}

// All channels of a tile: to[point * PointStride + channel].
template <class D>
HWY_INLINE void TransformSrcTile(D d, const Winograd5x5Shape& shape,
                                 const float* src, int64_t tile, float* to) {
  const TilePlace place(shape, tile);
  const int64_t plane = shape.src_height * shape.src_width * shape.block;
  const int64_t stride = PointStride(shape.src_channels);
  src += place.image * (shape.src_channels / shape.block) * plane;
  for (int64_t c = 0; c < shape.src_channels; c += LanesOf(d)) {
    TransformSrcVector(d, shape,
                       src + c / shape.block * plane + c % shape.block,
                       place.row - shape.pad_top, place.column - shape.pad_left,
                       to + c, stride);
  }
}

// From a vector of channels at the points to `rows` times `columns` of dst.
template <class D>
HWY_INLINE void TransformDstVector(D d, const Winograd5x5Shape& shape,
                                   const float* from, int64_t stride,
                                   hn::Vec<D> bias, hn::Vec<D> least,
                                   int64_t rows, int64_t columns, float* dst) {
  HWY_ALIGN float half[2 * kSide * kMostLanes];
  for (int64_t x = 0; x < kSide; ++x) {
    const auto column = LoadSix(d, from + x * stride, kSide * stride);
    const auto two = TransformDst(d, column);
    hn::StoreU(two.v0, d, half + x * kMostLanes);
    hn::StoreU(two.v1, d, half + (kSide + x) * kMostLanes);
  }
  for (int64_t y = 0; y < rows; ++y) {
    const auto row = LoadSix(d, half + y * kSide * kMostLanes, kMostLanes);
    const auto two = TransformDst(d, row);
    float* const to = dst + y * shape.dst_width * shape.block;
    // In this order x86 keeps a NaN.
    hn::StoreU(hn::Max(least, hn::Add(two.v0, bias)), d, to);
    if (columns == 1) continue;
    hn::StoreU(hn::Max(least, hn::Add(two.v1, bias)), d, to + shape.block);
  }
}

template <class D>
HWY_INLINE void TransformDstTile(D d, const Winograd5x5Shape& shape,
                                 const float* from, const float* bias,
                                 bool relu, int64_t tile, float* dst) {
  const TilePlace place(shape, tile);
  const int64_t plane = shape.dst_height * shape.dst_width * shape.block;
  const int64_t stride = PointStride(shape.dst_channels);
  dst += place.image * (shape.dst_channels / shape.block) * plane +
         (place.row * shape.dst_width + place.column) * shape.block;
  const int64_t rows = std::min<int64_t>(2, shape.dst_height - place.row);
  const int64_t columns = std::min<int64_t>(2, shape.dst_width - place.column);
  const auto least =
      relu ? hn::Zero(d) : hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t c = 0; c < shape.dst_channels; c += LanesOf(d)) {
    TransformDstVector(d, shape, from + c, stride,
                       hn::LoadU(d, bias == nullptr ? kZeros : bias + c), least,
                       rows, columns,
                       dst + c / shape.block * plane + c % shape.block);
  }
}

// The gradient of a tile's 2x2 of dst, one vector of channels, at the points;
// returns its sum.
template <class D>
HWY_INLINE hn::Vec<D> TransformDiffDstVector(D d, const float* upper,
                                             int64_t row, int64_t block,
                                             int64_t rows, int64_t columns,
                                             float* to, int64_t stride) {
  HWY_ALIGN float half[2 * kSide * kMostLanes];
  const auto zero = hn::Zero(d);
  const auto v00 = hn::LoadU(d, upper);
  const auto v01 = columns == 2 ? hn::LoadU(d, upper + block) : zero;
  const auto v10 = rows == 2 ? hn::LoadU(d, upper + row) : zero;
  const auto v11 =
      rows == 2 && columns == 2 ? hn::LoadU(d, upper + row + block) : zero;
  StoreSix(d, TransformDiffDst(d, v00, v10), half, kMostLanes);
  StoreSix(d, TransformDiffDst(d, v01, v11), half + kSide * kMostLanes,
           kMostLanes);
  for (int64_t y = 0; y < kSide; ++y) {
    const auto left = hn::LoadU(d, half + y * kMostLanes);
    const auto right = hn::LoadU(d, half + (kSide + y) * kMostLanes);
    StoreSix(d, TransformDiffDst(d, left, right), to + y * kSide * stride,
             stride);
  }
  return hn::Add(hn::Add(v00, v01), hn::Add(v10, v11));
}

// Adds to `bias_sums` too.
template <class D>
HWY_INLINE void TransformDiffDstTile(D d, const Winograd5x5Shape& shape,
                                     const float* diff_dst, int64_t tile,
                                     float* to, float* bias_sums) {
  const TilePlace place(shape, tile);
  const int64_t plane = shape.dst_height * shape.dst_width * shape.block;
  const int64_t stride = PointStride(shape.dst_channels);
  diff_dst += place.image * (shape.dst_channels / shape.block) * plane +
              (place.row * shape.dst_width + place.column) * shape.block;
  const int64_t rows = std::min<int64_t>(2, shape.dst_height - place.row);
  const int64_t columns = std::min<int64_t>(2, shape.dst_width - place.column);
  for (int64_t c = 0; c < shape.dst_channels; c += LanesOf(d)) {
    const auto sum = TransformDiffDstVector(
        d, diff_dst + c / shape.block * plane + c % shape.block,
        shape.dst_width * shape.block, shape.block, rows, columns, to + c,
        stride);
    hn::StoreU(hn::Add(hn::LoadU(d, bias_sums + c), sum), d, bias_sums + c);
  }
}

HWY_ATTR void TransformWeightsAll(const Winograd5x5Shape& shape,
                                  WinogradPass pass, const float* weights,
                                  float* transformed) {
  const hn::CappedTag<float, kMostLanes> d;
  const int64_t lanes = LanesOf(d), taps = kWindow * kWindow;
  const bool forward = pass == WinogradPass::kForward;
  const int64_t src_stride = forward ? taps : shape.dst_channels * taps;
  const int64_t dst_stride = forward ? shape.src_channels * taps : taps;
  HWY_ALIGN float window[kWindow * kSide * kMostLanes] = {};
  HWY_ALIGN float half[kWinogradPoints * kMostLanes] = {};
  for (int64_t i = 0; i < shape.src_channels; ++i) {
    for (int64_t o = 0; o < shape.dst_channels; o += lanes) {
      const float* const from = weights + i * src_stride + o * dst_stride;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        for (int64_t t = 0; t < taps; ++t) {
          window[t * kMostLanes + lane] =
              from[lane * dst_stride + (forward ? t : taps - 1 - t)];
        }
      }
      // The sixth of each is not read.
      for (int64_t x = 0; x < kWindow; ++x) {
        const auto column =
            LoadSix(d, window + x * kMostLanes, kWindow * kMostLanes);
        StoreSix(d, TransformWeights(d, column), half + x * kMostLanes,
                 kSide * kMostLanes);
      }
      for (int64_t y = 0; y < kSide; ++y) {
        const auto row = LoadSix(d, half + y * kSide * kMostLanes, kMostLanes);
        StoreSix(d, TransformWeights(d, row),
                 transformed + y * kSide * shape.weights() +
                     i * shape.dst_channels + o,
                 shape.weights());
      }
    }
  }
}

HWY_ATTR void Convolve(const Winograd5x5Shape& shape, int64_t begin,
                       int64_t end, const float* src, const float* transformed,
                       const float* bias, bool relu, float* scratch,
                       float* dst) {
  const int64_t src_stride = PointStride(shape.src_channels);
  const int64_t dst_stride = PointStride(shape.dst_channels);
  float* const src_at = scratch;
  float* const dst_at = scratch + kWinogradPoints * src_stride;
  for (int64_t first = begin; first < end; first += kWinogradTiles) {
    const int64_t tiles = std::min(kWinogradTiles, end - first);
    WithBlockVectors(shape, [&](auto d) {
      for (int64_t t = 0; t < tiles; ++t) {
        TransformSrcTile(d, shape, src, first + t,
                         src_at + t * shape.src_channels);
      }
    });
    MatrixProduct product;
    // A last row too many comes from what was there before: nobody reads it.
    product.rows = (tiles + 1) / 2 * 2;
    product.columns = shape.dst_channels;
    product.depth = product.a_row = shape.src_channels;
    for (int64_t point = 0; point < kWinogradPoints; ++point) {
      Multiply(product, src_at + point * src_stride,
               transformed + point * shape.weights(),
               dst_at + point * dst_stride);
    }
    WithBlockVectors(shape, [&](auto d) {
      for (int64_t t = 0; t < tiles; ++t) {
        TransformDstTile(d, shape, dst_at + t * shape.dst_channels, bias, relu,
                         first + t, dst);
      }
    });
  }
}

HWY_ATTR void SumGradients(const Winograd5x5Shape& shape, int64_t begin,
                           int64_t end, const float* src, const float* diff_dst,
                           float* scratch, float* sums) {
  const int64_t src_stride = PointStride(shape.src_channels);
  const int64_t dst_stride = PointStride(shape.dst_channels);
  float* const src_at = scratch;
  float* const dst_at = scratch + kWinogradPoints * src_stride;
  float* const bias_sums = sums + kWinogradPoints * shape.weights();
  std::memset(sums, 0, WinogradSumsFloats(shape) * sizeof(float));
  MatrixProduct product;
  product.rows = product.a_step = shape.src_channels;
  product.columns = shape.dst_channels;
  product.add = true;
  for (int64_t first = begin; first < end; first += kWinogradTiles) {
    product.depth = std::min(kWinogradTiles, end - first);
    WithBlockVectors(shape, [&](auto d) {
      for (int64_t t = 0; t < product.depth; ++t) {
        TransformSrcTile(d, shape, src, first + t,
                         src_at + t * shape.src_channels);
        TransformDiffDstTile(d, shape, diff_dst, first + t,
                             dst_at + t * shape.dst_channels, bias_sums);
      }
    });
    for (int64_t point = 0; point < kWinogradPoints; ++point) {
      Multiply(product, src_at + point * src_stride,
               dst_at + point * dst_stride, sums + point * shape.weights());
    }
  }
}

HWY_ATTR void FinishGradient(const Winograd5x5Shape& shape, const float* sums,
                             float* diff_weights) {
  const hn::CappedTag<float, kMostLanes> d;
  const int64_t lanes = LanesOf(d), taps = kWindow * kWindow;
  HWY_ALIGN float half[kWinogradPoints * kMostLanes];
  HWY_ALIGN float window[kWindow * kSide * kMostLanes];
  for (int64_t i = 0; i < shape.src_channels; ++i) {
    for (int64_t o = 0; o < shape.dst_channels; o += lanes) {
      const float* const from = sums + i * shape.dst_channels + o;
      for (int64_t x = 0; x < kSide; ++x) {
        const auto column =
            LoadSix(d, from + x * shape.weights(), kSide * shape.weights());
        StoreSix(d, TransformDiffWeights(d, column), half + x * kMostLanes,
                 kSide * kMostLanes);
      }
      for (int64_t y = 0; y < kWindow; ++y) {
        const auto row = LoadSix(d, half + y * kSide * kMostLanes, kMostLanes);
        // The sixth is overwritten by the next row's first.
        StoreSix(d, TransformDiffWeights(d, row),
                 window + y * kWindow * kMostLanes, kMostLanes);
      }
      for (int64_t lane = 0; lane < lanes; ++lane) {
        float* const to =
            diff_weights + ((o + lane) * shape.src_channels + i) * taps;
        for (int64_t t = 0; t < taps; ++t) {
          to[t] = window[t * kMostLanes + lane];
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {

HWY_EXPORT(TransformWeightsAll);
HWY_EXPORT(Convolve);
HWY_EXPORT(SumGradients);
HWY_EXPORT(FinishGradient);

int64_t WinogradScratchFloats(const Winograd5x5Shape& shape) {
  return kWinogradPoints *
         (PointStride(shape.src_channels) + PointStride(shape.dst_channels));
}

int64_t WinogradWeightsFloats(const Winograd5x5Shape& shape) {
  return kWinogradPoints * shape.weights();
}

int64_t WinogradSumsFloats(const Winograd5x5Shape& shape) {
  return kWinogradPoints * shape.weights() + shape.dst_channels;
}

void WinogradTransformWeights(const Winograd5x5Shape& shape, WinogradPass pass,
                              const float* weights, float* transformed) {
  HWY_DYNAMIC_DISPATCH(TransformWeightsAll)(shape, pass, weights, transformed);
}

void WinogradConvolve(const Winograd5x5Shape& shape, int64_t begin, int64_t end,
                      const float* src, const float* transformed,
                      const float* bias, bool relu, float* scratch,
                      float* dst) {
  HWY_DYNAMIC_DISPATCH(Convolve)
  (shape, begin, end, src, transformed, bias, relu, scratch, dst);
}

void WinogradSumGradients(const Winograd5x5Shape& shape, int64_t begin,
                          int64_t end, const float* src, const float* diff_dst,
                          float* scratch, float* sums) {
  HWY_DYNAMIC_DISPATCH(SumGradients)
  (shape, begin, end, src, diff_dst, scratch, sums);
}

void WinogradFinishGradient(const Winograd5x5Shape& shape, const float* sums,
                            float* diff_weights) {
  HWY_DYNAMIC_DISPATCH(FinishGradient)(shape, sums, diff_weights);
}

}  // namespace muster
#endif  // HWY_ONCE
