// Momentum (Polyak 1964), also in Nesterov's form (Sutskever et al. 2013).
//
//   u <- mu * u + g
//   p <- p - lr * u               (momentum)
//   p <- p - lr * (g + mu * u)    (nesterov)
//
// Source: torch.optim.SGD(momentum, nesterov, dampening=0) and
// tf.train.MomentumOptimizer, which agree: the learning rate is outside u, so
// a schedule acts at once on the whole step.
// Slots: momentum (u), 0 at first. Defaults: learning_rate 0.01 (tf.keras),
// momentum 0.9 (both frameworks' tutorials; neither has a usable default).
#ifndef COMMON_OPTIMIZER_MOMENTUM_REF_H_
#define COMMON_OPTIMIZER_MOMENTUM_REF_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "common/optimizer/update_rule.h"

namespace muster {

// `kAlwaysNesterov` is the rule named "nesterov"; the other one asks its
// attribute.
template <bool kAlwaysNesterov>
class MomentumFormula {
 public:
  template <typename T>
  using Constants = MomentumConstants<T>;

  MomentumFormula(const Attributes& attributes,
                  const LearningRate& learning_rate)
      : learning_rate_(learning_rate),
        momentum_(attributes.Float("momentum")),
        nesterov_(kAlwaysNesterov || attributes.Bool("nesterov")) {}

  template <typename T>
  Constants<T> ConstantsAt(const BlockUpdate& update) const {
    return {static_cast<T>(update.RateOf(learning_rate_)),
            static_cast<T>(momentum_), nesterov_};
  }

  template <typename T>
  std::vector<SlotDefOf<T>> Slots() const {
    return {{"momentum", T{0}}};
  }

  template <typename T>
  static void Update(const Constants<T>& c, T gradient, T* parameter,
                     absl::Span<T* const> slots, int64_t i) {
    T& u = slots[0][i];
    u = c.momentum * u + gradient;
    const T step = c.nesterov ? gradient + c.momentum * u : u;
    *parameter -= c.learning_rate * step;
  }

 private:
  const LearningRate learning_rate_;
  const double momentum_;
  const bool nesterov_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_MOMENTUM_REF_H_
