#include <algorithm>

#include "worker/backend/ref/ref_primitives.h"

namespace muster {
namespace {

template <typename T>
class DenseForward : public Primitive {
 public:
  explicit DenseForward(const DenseDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kWeights, RefLayout<T>(desc.weights_shape()));
    if (desc.has_bias) Take(Operand::kBias, RefLayout<T>(desc.bias_shape()));
    Take(Operand::kDst, RefLayout<T>(desc.dst_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    const T* weights = operands.As<const T>(Operand::kWeights);
    const T* bias = operands.As<const T>(Operand::kBias);
    T* dst = operands.As<T>(Operand::kDst);
    const int64_t I = desc_.src_features, O = desc_.dst_features;
    for (int64_t n = 0; n < desc_.batch; ++n)
      for (int64_t o = 0; o < O; ++o) {
        T sum = desc_.has_bias ? bias[o] : 0;
        for (int64_t i = 0; i < I; ++i) {
          sum += src[n * I + i] * weights[o * I + i];
        }
        dst[n * O + o] = desc_.relu ? std::max(sum, T{0}) : sum;
      }
    return absl::OkStatus();
  }

  const DenseDesc desc_;
};

template <typename T>
class DenseBackwardData : public Primitive {
 public:
  explicit DenseBackwardData(const DenseDesc& desc) : desc_(desc) {
    Take(Operand::kDiffDst, RefLayout<T>(desc.dst_shape()));
    Take(Operand::kWeights, RefLayout<T>(desc.weights_shape()));
    Take(Operand::kDiffSrc, RefLayout<T>(desc.src_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    const T* weights = operands.As<const T>(Operand::kWeights);
    T* diff_src = operands.As<T>(Operand::kDiffSrc);
    const int64_t I = desc_.src_features, O = desc_.dst_features;
    std::fill_n(diff_src, desc_.batch * I, T{0});
    for (int64_t n = 0; n < desc_.batch; ++n)
      for (int64_t o = 0; o < O; ++o)
        for (int64_t i = 0; i < I; ++i) {
          diff_src[n * I + i] += diff_dst[n * O + o] * weights[o * I + i];
        }
    return absl::OkStatus();
  }

  const DenseDesc desc_;
};

template <typename T>
class DenseBackwardWeights : public Primitive {
 public:
  explicit DenseBackwardWeights(const DenseDesc& desc) : desc_(desc) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kDiffDst, RefLayout<T>(desc.dst_shape()));
    Take(Operand::kDiffWeights, RefLayout<T>(desc.weights_shape()));
    if (desc.has_bias) {
      Take(Operand::kDiffBias, RefLayout<T>(desc.bias_shape()));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    const T* src = operands.As<const T>(Operand::kSrc);
    const T* diff_dst = operands.As<const T>(Operand::kDiffDst);
    T* diff_weights = operands.As<T>(Operand::kDiffWeights);
    T* diff_bias = operands.As<T>(Operand::kDiffBias);
    const int64_t I = desc_.src_features, O = desc_.dst_features;
    std::fill_n(diff_weights, O * I, T{0});
    if (desc_.has_bias) std::fill_n(diff_bias, O, T{0});
    for (int64_t n = 0; n < desc_.batch; ++n)
      for (int64_t o = 0; o < O; ++o) {
        const T diff = diff_dst[n * O + o];
        if (desc_.has_bias) diff_bias[o] += diff;
        for (int64_t i = 0; i < I; ++i) {
          diff_weights[o * I + i] += diff * src[n * I + i];
        }
      }
    return absl::OkStatus();
  }

  const DenseDesc desc_;
};

}  // namespace

template <typename T>
RefPrimitive MakeRefDenseForward(const DenseDesc& desc) {
  return std::make_unique<DenseForward<T>>(desc);
}
template <typename T>
RefPrimitive MakeRefDenseBackwardData(const DenseDesc& desc) {
  return std::make_unique<DenseBackwardData<T>>(desc);
}
template <typename T>
RefPrimitive MakeRefDenseBackwardWeights(const DenseDesc& desc) {
  return std::make_unique<DenseBackwardWeights<T>>(desc);
}

template RefPrimitive MakeRefDenseForward<float>(const DenseDesc&);
template RefPrimitive MakeRefDenseForward<double>(const DenseDesc&);
template RefPrimitive MakeRefDenseBackwardData<float>(const DenseDesc&);
template RefPrimitive MakeRefDenseBackwardData<double>(const DenseDesc&);
template RefPrimitive MakeRefDenseBackwardWeights<float>(const DenseDesc&);
template RefPrimitive MakeRefDenseBackwardWeights<double>(const DenseDesc&);

}  // namespace muster
