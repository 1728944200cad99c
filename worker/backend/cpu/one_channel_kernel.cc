#include "worker/backend/cpu/one_channel_kernel.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "worker/backend/cpu/one_channel_kernel.cc"
#include "hwy/foreach_target.h"  // Compiles this file once for each target.
#include "hwy/highway.h"

#ifndef WORKER_BACKEND_CPU_ONE_CHANNEL_KERNEL_ONCE_
#define WORKER_BACKEND_CPU_ONE_CHANNEL_KERNEL_ONCE_
namespace muster {
namespace {

constexpr int64_t kBorder = kOneChannelWindow - 1;

// An image with zeros around it: what the window reads.
int64_t PaddedWidth(const OneChannelShape& shape) {
  return shape.dst_width + kBorder;
}
int64_t PaddedHeight(const OneChannelShape& shape) {
  return shape.dst_height + kBorder;
}

// One image's block of dst.
int64_t PlaneFloats(const OneChannelShape& shape) {
  return shape.dst_height * shape.dst_width * kOneChannelBlock;
}

void PadImage(const OneChannelShape& shape, const float* image, float* padded) {
  const int64_t width = PaddedWidth(shape);
  std::memset(padded, 0, PaddedHeight(shape) * width * sizeof(float));
  const int64_t rows =
      std::min(shape.src_height, PaddedHeight(shape) - shape.pad_top);
  const int64_t columns = std::min(shape.src_width, width - shape.pad_left);
  for (int64_t y = 0; y < rows; ++y) {
    std::memcpy(padded + (y + shape.pad_top) * width + shape.pad_left,
                image + y * shape.src_width, columns * sizeof(float));
  }
}

}  // namespace
}  // namespace muster
#endif  // WORKER_BACKEND_CPU_ONE_CHANNEL_KERNEL_ONCE_

HWY_BEFORE_NAMESPACE();
namespace muster {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Eight channels or fewer: every block is a multiple.
using Channels = hn::CappedTag<float, kOneChannelBlock>;
using ChannelVector = hn::Vec<Channels>;

// Sums of one row of the window, a vector of channels.
struct TapRow {
  ChannelVector tap0, tap1, tap2, tap3, tap4;
};

HWY_INLINE TapRow ZeroTaps() {
  const auto zero = hn::Zero(Channels());
  return {zero, zero, zero, zero, zero};
}

// The five values that begin at `src`, times the gradient of one dst.
HWY_INLINE void AddTaps(const float* src, ChannelVector diff, TapRow* sums) {
  const Channels d;
  sums->tap0 = hn::MulAdd(hn::Set(d, src[0]), diff, sums->tap0);
  sums->tap1 = hn::MulAdd(hn::Set(d, src[1]), diff, sums->tap1);
  sums->tap2 = hn::MulAdd(hn::Set(d, src[2]), diff, sums->tap2);
  sums->tap3 = hn::MulAdd(hn::Set(d, src[3]), diff, sums->tap3);
  sums->tap4 = hn::MulAdd(hn::Set(d, src[4]), diff, sums->tap4);
}

HWY_INLINE void AddToSums(const TapRow& row, int64_t channels, float* sums) {
  const Channels d;
  int64_t tap = 0;
  for (const ChannelVector v :
       {row.tap0, row.tap1, row.tap2, row.tap3, row.tap4}) {
    float* const to = sums + tap++ * channels;
    hn::StoreU(hn::Add(hn::LoadU(d, to), v), d, to);
  }
}

// One row of the window, from the padded row that it begins at, over all of
// dst: of the vector of channels at `diff_dst` and, with `kTwo`, of that in the
// next block, so that the multiplications wait for nothing.
template <bool kTwo>
HWY_INLINE void SumTapRow(const OneChannelShape& shape, const float* padded,
                          const float* diff_dst, float* sums) {
  const Channels d;
  const int64_t plane = PlaneFloats(shape);
  TapRow first = ZeroTaps(), second = ZeroTaps();
  for (int64_t y = 0; y < shape.dst_height; ++y) {
    for (int64_t x = 0; x < shape.dst_width; ++x) {
      AddTaps(padded + x, hn::LoadU(d, diff_dst), &first);
      if constexpr (kTwo) {
        AddTaps(padded + x, hn::LoadU(d, diff_dst + plane), &second);
      }
      diff_dst += kOneChannelBlock;
    }
    padded += PaddedWidth(shape);
  }
  AddToSums(first, shape.channels, sums);
  if constexpr (kTwo) {
    AddToSums(second, shape.channels, sums + kOneChannelBlock);
  }
}

HWY_INLINE void SumBias(const OneChannelShape& shape, const float* diff_dst,
                        float* sums) {
  const Channels d;
  auto sum = hn::LoadU(d, sums);
  for (int64_t at = 0; at < PlaneFloats(shape); at += kOneChannelBlock) {
    sum = hn::Add(sum, hn::LoadU(d, diff_dst + at));
  }
  hn::StoreU(sum, d, sums);
}

// The vectors of channels of an image at the same place in one block, or two.
template <bool kTwo>
HWY_INLINE void SumChannels(const OneChannelShape& shape, const float* padded,
                            const float* diff_dst, float* sums) {
  for (int64_t y = 0; y < kOneChannelWindow; ++y) {
    SumTapRow<kTwo>(shape, padded + y * PaddedWidth(shape), diff_dst,
                    sums + y * kOneChannelWindow * shape.channels);
  }
  float* const biases = sums + kOneChannelTaps * shape.channels;
  SumBias(shape, diff_dst, biases);
  if constexpr (kTwo) {
    SumBias(shape, diff_dst + PlaneFloats(shape), biases + kOneChannelBlock);
  }
}

HWY_INLINE void SumImage(const OneChannelShape& shape, const float* padded,
                         const float* diff_dst, float* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Channels()));
  for (int64_t c = 0; c < shape.channels; c += 2 * kOneChannelBlock) {
    const bool two = c + kOneChannelBlock < shape.channels;
    const float* const from =
        diff_dst + c / kOneChannelBlock * PlaneFloats(shape);
    for (int64_t lane = 0; lane < kOneChannelBlock; lane += lanes) {
      if (two) {
        SumChannels<true>(shape, padded, from + lane, sums + c + lane);
      } else {
        SumChannels<false>(shape, padded, from + lane, sums + c + lane);
      }
    }
  }
}

HWY_ATTR void SumGradients(const OneChannelShape& shape, int64_t begin,
                           int64_t end, const float* src, const float* diff_dst,
                           float* scratch, float* sums) {
  const int64_t src_image = shape.src_height * shape.src_width;
  const int64_t dst_image =
      shape.channels / kOneChannelBlock * PlaneFloats(shape);
  std::memset(sums, 0, OneChannelSumsFloats(shape) * sizeof(float));
  for (int64_t image = begin; image < end; ++image) {
    PadImage(shape, src + image * src_image, scratch);
    SumImage(shape, scratch, diff_dst + image * dst_image, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace muster
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster {

HWY_EXPORT(SumGradients);

int64_t OneChannelScratchFloats(const OneChannelShape& shape) {
  return PaddedHeight(shape) * PaddedWidth(shape);
}

int64_t OneChannelSumsFloats(const OneChannelShape& shape) {
  return (kOneChannelTaps + 1) * shape.channels;
}

void SumOneChannelGradients(const OneChannelShape& shape, int64_t begin,
                            int64_t end, const float* src,
                            const float* diff_dst, float* scratch,
                            float* sums) {
  HWY_DYNAMIC_DISPATCH(SumGradients)
  (shape, begin, end, src, diff_dst, scratch, sums);
}

}  // namespace muster
#endif  // HWY_ONCE
