// The common part of conv2d and dense: the operands of their three
// primitives. The loops over them are functions of the description `Desc`
// (Conv2dDesc or DenseDesc).
#ifndef WORKER_BACKEND_REF_WEIGHTED_PRIMITIVES_H_
#define WORKER_BACKEND_REF_WEIGHTED_PRIMITIVES_H_

#include "worker/backend/ref/ref_primitives.h"

namespace muster {

// dst = f(src, weights, bias); no bias: null.
template <typename T, typename Desc>
class WeightedForward : public Primitive {
 public:
  using Loops = void (*)(const Desc& desc, const T* src, const T* weights,
                         const T* bias, T* dst);

  WeightedForward(const Desc& desc, Loops loops) : desc_(desc), loops_(loops) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kWeights, RefLayout<T>(desc.weights_shape()));
    if (desc.has_bias) Take(Operand::kBias, RefLayout<T>(desc.bias_shape()));
    Take(Operand::kDst, RefLayout<T>(desc.dst_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    loops_(desc_, operands.As<const T>(Operand::kSrc),
           operands.As<const T>(Operand::kWeights),
           operands.As<const T>(Operand::kBias), operands.As<T>(Operand::kDst));
    return absl::OkStatus();
  }

  const Desc desc_;
  const Loops loops_;
};

// diff_src = f(diff_dst, weights)
template <typename T, typename Desc>
class WeightedBackwardData : public Primitive {
 public:
  using Loops = void (*)(const Desc& desc, const T* diff_dst, const T* weights,
                         T* diff_src);

  WeightedBackwardData(const Desc& desc, Loops loops)
      : desc_(desc), loops_(loops) {
    Take(Operand::kDiffDst, RefLayout<T>(desc.dst_shape()));
    Take(Operand::kWeights, RefLayout<T>(desc.weights_shape()));
    Take(Operand::kDiffSrc, RefLayout<T>(desc.src_shape()));
  }

 private:
  absl::Status Run(const Operands& operands) override {
    loops_(desc_, operands.As<const T>(Operand::kDiffDst),
           operands.As<const T>(Operand::kWeights),
           operands.As<T>(Operand::kDiffSrc));
    return absl::OkStatus();
  }

  const Desc desc_;
  const Loops loops_;
};

// diff_weights, diff_bias = f(src, diff_dst); no bias: null.
template <typename T, typename Desc>
class WeightedBackwardWeights : public Primitive {
 public:
  using Loops = void (*)(const Desc& desc, const T* src, const T* diff_dst,
                         T* diff_weights, T* diff_bias);

  WeightedBackwardWeights(const Desc& desc, Loops loops)
      : desc_(desc), loops_(loops) {
    Take(Operand::kSrc, RefLayout<T>(desc.src_shape()));
    Take(Operand::kDiffDst, RefLayout<T>(desc.dst_shape()));
    Take(Operand::kDiffWeights, RefLayout<T>(desc.weights_shape()));
    if (desc.has_bias) {
      Take(Operand::kDiffBias, RefLayout<T>(desc.bias_shape()));
    }
  }

 private:
  absl::Status Run(const Operands& operands) override {
    loops_(desc_, operands.As<const T>(Operand::kSrc),
           operands.As<const T>(Operand::kDiffDst),
           operands.As<T>(Operand::kDiffWeights),
           operands.As<T>(Operand::kDiffBias));
    return absl::OkStatus();
  }

  const Desc desc_;
  const Loops loops_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_REF_WEIGHTED_PRIMITIVES_H_
