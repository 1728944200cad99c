#include "common/optimizer/learning_rate_factor.h"

namespace muster {

double LearningRateFactor(const EvaluationHistory& history, int64_t update) {
  const double factor = update >= history.factor_from()
                            ? history.learning_rate_factor()
                            : history.learning_rate_factor_before();
  return factor == 0 ? 1 : factor;
}

}  // namespace muster
