// FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the
// Trenches", KDD 2013, algorithm 1), per coordinate:
//
//   sigma <- (beta + sqrt(n + g * g)) / lr - (beta + sqrt(n)) / lr'
//   z <- z + g - sigma * p
//   n <- n + g * g
//   p <- 0                                                   if |z| <= l1
//   p <- -(z - sign(z) * l1) / ((beta + sqrt(n)) / lr + l2)  otherwise
//
// lr is alpha of the paper and lr' its value one update earlier (the same one
// before the first). With a constant lr, sigma is the paper's
// (sqrt(n + g * g) - sqrt(n)) / lr. With a schedule it keeps the paper's
// invariant that sigma sums up to the inverse of the rate, so that a smaller
// lr makes smaller steps and does not pull p to 0. lr is kept at 1e-6 of its
// start or more, for the rule divides by it.
// With a rate factor f, lr is f * lr for this update and lr again after it: the
// move back is the same step without a gradient,
//
//   z <- z - ((beta + sqrt(n)) / lr - (beta + sqrt(n)) / (f * lr)) * p
//
// which leaves p where it is.
// The rule writes p from z alone: initial values other than 0 fade within the
// first updates. tf.train.FtrlOptimizer is the same with beta 0, n starting at
// 0.1, and its l2 half as large as ours.
// A g whose square is no normal number is 0 (SquarableGradient): with beta 0
// there would be no n to divide z by.
// Slots: z and n, 0 at first (paper). Defaults: learning_rate 0.1 (its
// experiments' magnitude), beta 1 ("usually good enough"), l1 0, l2 0.
#ifndef COMMON_OPTIMIZER_FTRL_REF_H_
#define COMMON_OPTIMIZER_FTRL_REF_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "common/optimizer/update_rule.h"

namespace muster {

class FtrlFormula {
 public:
  template <typename T>
  using Constants = FtrlConstants<T>;

  FtrlFormula(const Attributes& attributes, const LearningRate& learning_rate)
      : learning_rate_(learning_rate),
        beta_(attributes.Float("beta")),
        l1_(attributes.Float("l1")),
        l2_(attributes.Float("l2")) {}

  template <typename T>
  Constants<T> ConstantsAt(const BlockUpdate& update) const {
    const int64_t done = update.completed();
    const int64_t done_before = update.completed_before();
    return {static_cast<T>(InverseRateAt(done, update.rate_factor)),
            static_cast<T>(InverseRateAt(done, 1)),
            static_cast<T>(InverseRateAt(done_before, 1)),
            update.rate_factor != 1,
            static_cast<T>(beta_),
            static_cast<T>(l1_),
            static_cast<T>(l2_)};
  }

  template <typename T>
  std::vector<SlotDefOf<T>> Slots() const {
    return {{"z", T{0}}, {"n", T{0}}};
  }

  template <typename T>
  static void Update(const Constants<T>& c, T pushed, T* parameter,
                     absl::Span<T* const> slots, int64_t i) {
    const T gradient = SquarableGradient(pushed);
    T& z = slots[0][i];
    T& n = slots[1][i];
    const T old_strength = (c.beta + std::sqrt(n)) * c.previous_inverse_rate;
    n += gradient * gradient;
    const T root = c.beta + std::sqrt(n);
    const T strength = root * c.inverse_rate;
    z += gradient - (strength - old_strength) * *parameter;
    const T shrunk = z - std::copysign(c.l1, z);
    *parameter = std::abs(z) <= c.l1 ? T{0} : -shrunk / (strength + c.l2);
    if (c.scaled) {
      z -= (root * c.unscaled_inverse_rate - strength) * *parameter;
    }
  }

 private:
  // Keeps 1 / lr finite when a schedule ends at 0.
  static constexpr double kSmallestFraction = 1e-6;

  double InverseRateAt(int64_t completed_updates, double rate_factor) const {
    return 1 / std::max(learning_rate_.At(completed_updates) * rate_factor,
                        kSmallestFraction * learning_rate_.base());
  }

  const LearningRate learning_rate_;
  const double beta_;
  const double l1_;
  const double l2_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_FTRL_REF_H_
