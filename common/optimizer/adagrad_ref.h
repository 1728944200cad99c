// Adagrad (Duchi, Hazan and Singer 2011).
//
//   a <- a + g * g
//   p <- p - lr * g / (sqrt(a) + epsilon)
//
// Source: torch.optim.Adagrad (lr_decay 0; use a schedule). Epsilon is outside
// the root and never 0: a unit that is never active has g and a of 0.
// A g whose square is no normal number is 0 (SquarableGradient).
// tf.train.AdagradOptimizer has no epsilon and starts a at 0.1: set
// initial_accumulator_value 0.1 and epsilon 1e-30 for its numbers.
// Slots: accumulator (a), initial_accumulator_value at first. Defaults:
// learning_rate 0.01, epsilon 1e-10, initial_accumulator_value 0 (PyTorch).
#ifndef COMMON_OPTIMIZER_ADAGRAD_REF_H_
#define COMMON_OPTIMIZER_ADAGRAD_REF_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "common/optimizer/update_rule.h"

namespace muster {

class AdagradFormula {
 public:
  template <typename T>
  using Constants = AdagradConstants<T>;

  AdagradFormula(const Attributes& attributes,
                 const LearningRate& learning_rate)
      : learning_rate_(learning_rate),
        epsilon_(attributes.Float("epsilon")),
        initial_accumulator_value_(
            attributes.Float("initial_accumulator_value")) {}

  template <typename T>
  Constants<T> ConstantsAt(const BlockUpdate& update) const {
    return {static_cast<T>(update.RateOf(learning_rate_)),
            static_cast<T>(epsilon_)};
  }

  template <typename T>
  std::vector<SlotDefOf<T>> Slots() const {
    return {{"accumulator", static_cast<T>(initial_accumulator_value_)}};
  }

  template <typename T>
  static void Update(const Constants<T>& c, T pushed, T* parameter,
                     absl::Span<T* const> slots, int64_t i) {
    const T gradient = SquarableGradient(pushed);
    T& a = slots[0][i];
    a += gradient * gradient;
    *parameter -= c.learning_rate * gradient / (std::sqrt(a) + c.epsilon);
  }

 private:
  const LearningRate learning_rate_;
  const double epsilon_;
  const double initial_accumulator_value_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_ADAGRAD_REF_H_
