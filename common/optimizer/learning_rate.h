#ifndef COMMON_OPTIMIZER_LEARNING_RATE_H_
#define COMMON_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// A learning rate and its schedule. With t completed updates:
//
//   constant     lr
//   exponential  lr * decay_rate ^ (t / decay_steps); the exponent is floored
//                if `staircase`. tf.train.exponential_decay.
//   cosine       lr * (alpha + (1 - alpha) * (1 + cos(pi * min(t, decay_steps)
//                / decay_steps)) / 2). tf.train.cosine_decay; Loshchilov and
//                Hutter, SGDR, 2017, without restarts.
//
// A value type; const methods are thread-safe.
class LearningRate {
 public:
  // REQUIRES: base > 0. Errors: InvalidArgument naming the schedule's field:
  // unknown name, decay_steps < 1, decay_rate <= 0, alpha outside [0, 1], a
  // field that the named schedule does not use.
  static absl::StatusOr<LearningRate> Create(double base,
                                             const ScheduleSpec& spec);

  // The rate after `completed_updates` >= 0 updates. Computed in double;
  // never negative.
  double At(int64_t completed_updates) const;

  // Before any schedule.
  double base() const { return base_; }

 private:
  enum class Kind { kConstant, kExponential, kCosine };

  LearningRate(double base, Kind kind, const ScheduleSpec& spec);

  double base_;
  Kind kind_;
  double decay_rate_;
  double decay_steps_;
  bool staircase_;
  double alpha_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_LEARNING_RATE_H_
