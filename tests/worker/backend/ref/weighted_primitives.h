// The common part of conv2d and dense: the operands of their three
// primitives. The loops over them are functions of the description `Desc`
// (Conv2dDesc or DenseDesc).
#ifndef WORKER_BACKEND_REF_WEIGHTED_PRIMITIVES_H_
#define WORKER_BACKEND_REF_WEIGHTED_PRIMITIVES_H_

#include <memory>

#include "tests/worker/backend/ref/ref_primitive.h"

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

// Registers P with its loops.
template <typename T, typename Desc, template <typename, typename> class P>
bool RegisterLoops(Pass pass, typename P<T, Desc>::Loops loops) {
  return RefPrimitives<T>::template Register<Desc>(
      pass,
      [loops](RefContext<T>, const Desc& desc) -> std::unique_ptr<Primitive> {
        return std::make_unique<P<T, Desc>>(desc, loops);
      });
}

// Registers all three.
template <typename T, typename Desc>
bool RegisterWeighted(
    typename WeightedForward<T, Desc>::Loops forward,
    typename WeightedBackwardData<T, Desc>::Loops backward_data,
    typename WeightedBackwardWeights<T, Desc>::Loops backward_weights) {
  return RegisterLoops<T, Desc, WeightedForward>(Pass::kForward, forward) &&
         RegisterLoops<T, Desc, WeightedBackwardData>(Pass::kBackwardData,
                                                      backward_data) &&
         RegisterLoops<T, Desc, WeightedBackwardWeights>(Pass::kBackwardWeights,
                                                         backward_weights);
}

}  // namespace muster

#endif  // WORKER_BACKEND_REF_WEIGHTED_PRIMITIVES_H_
