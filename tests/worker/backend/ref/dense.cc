#include <algorithm>

#include "tests/worker/backend/ref/weighted_primitives.h"

namespace muster {
namespace {

template <typename T>
void Forward(const DenseDesc& desc, const T* src, const T* weights,
             const T* bias, T* dst) {
  const int64_t I = desc.src_features, O = desc.dst_features;
  for (int64_t n = 0; n < desc.batch; ++n)
    for (int64_t o = 0; o < O; ++o) {
      T sum = desc.has_bias ? bias[o] : 0;
      for (int64_t i = 0; i < I; ++i) {
        sum += src[n * I + i] * weights[o * I + i];
      }
      dst[n * O + o] = desc.relu ? std::max(sum, T{0}) : sum;
    }
}

template <typename T>
void BackwardData(const DenseDesc& desc, const T* diff_dst, const T* weights,
                  T* diff_src) {
  const int64_t I = desc.src_features, O = desc.dst_features;
  std::fill_n(diff_src, desc.batch * I, T{0});
  for (int64_t n = 0; n < desc.batch; ++n)
    for (int64_t o = 0; o < O; ++o)
      for (int64_t i = 0; i < I; ++i) {
        diff_src[n * I + i] += diff_dst[n * O + o] * weights[o * I + i];
      }
}

template <typename T>
void BackwardWeights(const DenseDesc& desc, const T* src, const T* diff_dst,
                     T* diff_weights, T* diff_bias) {
  const int64_t I = desc.src_features, O = desc.dst_features;
  std::fill_n(diff_weights, O * I, T{0});
  if (desc.has_bias) std::fill_n(diff_bias, O, T{0});
  for (int64_t n = 0; n < desc.batch; ++n)
    for (int64_t o = 0; o < O; ++o) {
      const T diff = diff_dst[n * O + o];
      if (desc.has_bias) diff_bias[o] += diff;
      for (int64_t i = 0; i < I; ++i) {
        diff_weights[o * I + i] += diff * src[n * I + i];
      }
    }
}

[[maybe_unused]] const bool kRegistered =
    RegisterWeighted<float, DenseDesc>(&Forward, &BackwardData,
                                       &BackwardWeights) &&
    RegisterWeighted<double, DenseDesc>(&Forward, &BackwardData,
                                        &BackwardWeights);

}  // namespace
}  // namespace muster
