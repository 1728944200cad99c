// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).
//
//   p <- p - lr * weight_decay * p                    (adamw only)
//   m <- beta1 * m + (1 - beta1) * g
//   v <- beta2 * v + (1 - beta2) * g * g
//   p <- p - lr / (1 - beta1^t) * m
//            / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//
// Source: torch.optim.Adam and AdamW (amsgrad=False). Epsilon is outside the
// root and added after the bias correction ("epsilon" in the paper);
// tf.train.AdamOptimizer adds it before ("epsilon hat"). Weight decay is
// decoupled from the gradient and scaled by the scheduled lr, as in PyTorch.
// t is the count of updates of this block, this one included. A rate factor
// scales lr, and so the weight decay too.
// Slots: m and v, 0 at first. Defaults: learning_rate 0.001, beta1 0.9, beta2
// 0.999, epsilon 1e-8 (paper, PyTorch, TF); weight_decay 0.01 (PyTorch).
#ifndef COMMON_OPTIMIZER_ADAM_REF_H_
#define COMMON_OPTIMIZER_ADAM_REF_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "common/optimizer/update_rule.h"

namespace muster {

template <bool kDecoupledWeightDecay>
class AdamFormula {
 public:
  template <typename T>
  using Constants = AdamConstants<T>;

  AdamFormula(const Attributes& attributes, const LearningRate& learning_rate)
      : learning_rate_(learning_rate),
        beta1_(attributes.Float("beta1")),
        beta2_(attributes.Float("beta2")),
        epsilon_(attributes.Float("epsilon")),
        weight_decay_(kDecoupledWeightDecay ? attributes.Float("weight_decay")
                                            : 0) {}

  template <typename T>
  Constants<T> ConstantsAt(const BlockUpdate& update) const {
    const double learning_rate = update.RateOf(learning_rate_);
    const auto t = static_cast<double>(update.t);
    const double correction1 = 1 - std::pow(beta1_, t);
    const double correction2 = 1 - std::pow(beta2_, t);
    return {static_cast<T>(beta1_),
            static_cast<T>(1 - beta1_),
            static_cast<T>(beta2_),
            static_cast<T>(1 - beta2_),
            static_cast<T>(learning_rate / correction1),
            static_cast<T>(1 / std::sqrt(correction2)),
            static_cast<T>(epsilon_),
            static_cast<T>(1 - learning_rate * weight_decay_)};
  }

  template <typename T>
  std::vector<SlotDefOf<T>> Slots() const {
    return {{"m", T{0}}, {"v", T{0}}};
  }

  template <typename T>
  static void Update(const Constants<T>& c, T pushed, T* parameter,
                     absl::Span<T* const> slots, int64_t i) {
    const T gradient = SquarableGradient(pushed);
    T& m = slots[0][i];
    T& v = slots[1][i];
    m = c.beta1 * m + c.one_minus_beta1 * gradient;
    v = c.beta2 * v + c.one_minus_beta2 * (gradient * gradient);
    const T root = std::sqrt(v) * c.root_scale + c.epsilon;
    *parameter = c.shrinkage * *parameter - c.step_size * m / root;
  }

 private:
  const LearningRate learning_rate_;
  const double beta1_;
  const double beta2_;
  const double epsilon_;
  const double weight_decay_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_ADAM_REF_H_
