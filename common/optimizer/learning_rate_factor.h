#ifndef COMMON_OPTIMIZER_LEARNING_RATE_FACTOR_H_
#define COMMON_OPTIMIZER_LEARNING_RATE_FACTOR_H_

#include <cstdint>

#include "proto/evaluation_history.pb.h"

namespace muster {

// The largest factor that one push may ask for: a program's schedule may warm
// up from the optimizer's own rate.
inline constexpr double kMaxLearningRateFactor = 1e6;

// The factor of the learning rate of update number `update`, counted from 1, by
// the schedule on_plateau; 1 before the first plateau.
double LearningRateFactor(const EvaluationHistory& history, int64_t update);

}  // namespace muster

#endif  // COMMON_OPTIMIZER_LEARNING_RATE_FACTOR_H_
