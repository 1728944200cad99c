#include <algorithm>

#include "tests/worker/backend/ref/weighted_primitives.h"

namespace muster {
namespace {

// Calls visit(dst_index, src_index, weights_index) for every product in the
// formula of Conv2dDesc, and so says once for all three primitives which
// elements belong together.
template <typename Visit>
void ForEachProduct(const Conv2dDesc& d, Visit visit) {
  const WindowDesc& w = d.window;
  const int64_t dst_h = w.dst_h(d.height), dst_w = w.dst_w(d.width);
  // Those of one group.
  const int64_t srcs = d.src_channels / d.groups;
  const int64_t dsts = d.dst_channels / d.groups;
  for (int64_t n = 0; n < d.batch; ++n)
    for (int64_t o = 0; o < d.dst_channels; ++o)
      for (int64_t y = 0; y < dst_h; ++y)
        for (int64_t x = 0; x < dst_w; ++x)
          for (int64_t i = 0; i < srcs; ++i)
            for (int64_t ky = 0; ky < w.kernel_h; ++ky)
              for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
                const int64_t sy = y * w.stride_h + ky - w.pad_top;
                const int64_t sx = x * w.stride_w + kx - w.pad_left;
                if (sy < 0 || sy >= d.height || sx < 0 || sx >= d.width) {
                  continue;
                }
                const int64_t c = o / dsts * srcs + i;
                visit(((n * d.dst_channels + o) * dst_h + y) * dst_w + x,
                      ((n * d.src_channels + c) * d.height + sy) * d.width + sx,
                      ((o * srcs + i) * w.kernel_h + ky) * w.kernel_w + kx);
              }
}

// Calls visit(channel, index) for every element of dst.
template <typename Visit>
void ForEachDst(const Conv2dDesc& d, Visit visit) {
  const int64_t area = d.window.dst_h(d.height) * d.window.dst_w(d.width);
  for (int64_t n = 0; n < d.batch; ++n)
    for (int64_t o = 0; o < d.dst_channels; ++o)
      for (int64_t i = 0; i < area; ++i)
        visit(o, (n * d.dst_channels + o) * area + i);
}

template <typename T>
void Forward(const Conv2dDesc& desc, const T* src, const T* weights,
             const T* bias, T* dst) {
  ForEachDst(desc, [&](int64_t channel, int64_t i) {
    dst[i] = desc.has_bias ? bias[channel] : 0;
  });
  ForEachProduct(desc, [&](int64_t to, int64_t from, int64_t weight) {
    dst[to] += src[from] * weights[weight];
  });
  if (!desc.relu) return;
  ForEachDst(desc,
             [&](int64_t, int64_t i) { dst[i] = std::max(dst[i], T{0}); });
}

template <typename T>
void BackwardData(const Conv2dDesc& desc, const T* diff_dst, const T* weights,
                  T* diff_src) {
  std::fill_n(diff_src, desc.src_shape().num_elements(), T{0});
  ForEachProduct(desc, [&](int64_t to, int64_t from, int64_t weight) {
    diff_src[from] += diff_dst[to] * weights[weight];
  });
}

template <typename T>
void BackwardWeights(const Conv2dDesc& desc, const T* src, const T* diff_dst,
                     T* diff_weights, T* diff_bias) {
  std::fill_n(diff_weights, desc.weights_shape().num_elements(), T{0});
  ForEachProduct(desc, [&](int64_t to, int64_t from, int64_t weight) {
    diff_weights[weight] += src[from] * diff_dst[to];
  });
  if (!desc.has_bias) return;
  std::fill_n(diff_bias, desc.dst_channels, T{0});
  ForEachDst(desc, [&](int64_t channel, int64_t i) {
    diff_bias[channel] += diff_dst[i];
  });
}

[[maybe_unused]] const bool kRegistered =
    RegisterWeighted<float, Conv2dDesc>(&Forward, &BackwardData,
                                        &BackwardWeights) &&
    RegisterWeighted<double, Conv2dDesc>(&Forward, &BackwardData,
                                         &BackwardWeights);

}  // namespace
}  // namespace muster
