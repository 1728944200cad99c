// RMSProp (Tieleman and Hinton, Coursera lecture 6.5, 2012), not centred.
//
//   v <- decay * v + (1 - decay) * g * g
//   s <- g / (sqrt(v) + epsilon)
//   p <- p - lr * s                               (momentum 0)
//   u <- momentum * u + s;   p <- p - lr * u      (momentum > 0)
//
// Source: torch.optim.RMSprop. Epsilon is outside the root and lr outside u.
// tf.train.RMSPropOptimizer differs in both (epsilon inside, lr inside) and
// starts v at 1.
// Slots: v, 0 at first; with momentum also momentum (u), 0 at first. Defaults:
// learning_rate 0.01, decay 0.99, epsilon 1e-8, momentum 0 (PyTorch).
#ifndef COMMON_OPTIMIZER_RMSPROP_REF_H_
#define COMMON_OPTIMIZER_RMSPROP_REF_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "common/optimizer/update_rule.h"

namespace muster {

class RmspropFormula {
 public:
  template <typename T>
  using Constants = RmspropConstants<T>;

  RmspropFormula(const Attributes& attributes,
                 const LearningRate& learning_rate)
      : learning_rate_(learning_rate),
        decay_(attributes.Float("decay")),
        epsilon_(attributes.Float("epsilon")),
        momentum_(attributes.Float("momentum")) {}

  template <typename T>
  Constants<T> ConstantsAt(const BlockUpdate& update) const {
    return {static_cast<T>(update.RateOf(learning_rate_)),
            static_cast<T>(decay_), static_cast<T>(1 - decay_),
            static_cast<T>(epsilon_), static_cast<T>(momentum_)};
  }

  template <typename T>
  std::vector<SlotDefOf<T>> Slots() const {
    if (momentum_ == 0) return {{"v", T{0}}};
    return {{"v", T{0}}, {"momentum", T{0}}};
  }

  template <typename T>
  static void Update(const Constants<T>& c, T pushed, T* parameter,
                     absl::Span<T* const> slots, int64_t i) {
    const T gradient = SquarableGradient(pushed);
    T& v = slots[0][i];
    v = c.decay * v + c.one_minus_decay * (gradient * gradient);
    T step = gradient / (std::sqrt(v) + c.epsilon);
    if (slots.size() > 1) {
      T& u = slots[1][i];
      u = c.momentum * u + step;
      step = u;
    }
    *parameter -= c.learning_rate * step;
  }

 private:
  const LearningRate learning_rate_;
  const double decay_;
  const double epsilon_;
  const double momentum_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_RMSPROP_REF_H_
