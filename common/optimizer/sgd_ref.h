// Stochastic gradient descent.
//
//   p <- p - lr * g
//
// Source: torch.optim.SGD and tf.train.GradientDescentOptimizer, which agree.
// Slots: none. Default: learning_rate 0.01 (tf.keras).
// Exact for integer gradients and learning_rate 1, up to 2^24: the oracle of
// the exactly-once tests.
#ifndef COMMON_OPTIMIZER_SGD_REF_H_
#define COMMON_OPTIMIZER_SGD_REF_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/config/attributes.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/update_constants.h"
#include "common/optimizer/update_rule.h"

namespace muster {

class SgdFormula {
 public:
  template <typename T>
  using Constants = SgdConstants<T>;

  SgdFormula(const Attributes& /*attributes*/,
             const LearningRate& learning_rate)
      : learning_rate_(learning_rate) {}

  template <typename T>
  Constants<T> ConstantsAt(const BlockUpdate& update) const {
    return {static_cast<T>(update.RateOf(learning_rate_))};
  }

  template <typename T>
  std::vector<SlotDefOf<T>> Slots() const {
    return {};
  }

  template <typename T>
  static void Update(const Constants<T>& c, T gradient, T* parameter,
                     absl::Span<T* const> /*slots*/, int64_t /*i*/) {
    *parameter -= c.learning_rate * gradient;
  }

 private:
  const LearningRate learning_rate_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_SGD_REF_H_
