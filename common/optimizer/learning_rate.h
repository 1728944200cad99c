#ifndef COMMON_OPTIMIZER_LEARNING_RATE_H_
#define COMMON_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// A learning rate and its schedule. With t completed updates and
// done = min(t, decay_steps) / decay_steps:
//
//   constant     lr
//   exponential  lr * decay_rate ^ (t / decay_steps); the exponent is floored
//                if `staircase`. tf.train.exponential_decay.
//   cosine       lr * (alpha + (1 - alpha) * (1 + cos(pi * done)) / 2).
//                tf.train.cosine_decay; Loshchilov and Hutter, SGDR, 2017,
//                without restarts.
//   piecewise    value[i] for boundary[i - 1] < t <= boundary[i].
//                tf.train.piecewise_constant.
//   polynomial   (lr - end_learning_rate) * (1 - done) ^ power +
//                end_learning_rate. tf.train.polynomial_decay, without cycles.
//   on_plateau   lr; evaluations find factors (learning_rate_factor.h), which
//                an update is given as BlockUpdate::rate_factor.
//                torch.optim.lr_scheduler.ReduceLROnPlateau, threshold_mode
//                'abs'.
//
// and, whichever it is, times (t + 1) / warmup_steps while t < warmup_steps:
// gradual warm-up, Goyal et al., "Accurate, Large Minibatch SGD: Training
// ImageNet in 1 Hour", 2017, section 2.2. The schedule does not wait for the
// end of the warm-up: t counts from the first update for both.
//
// A value type; const methods are thread-safe.
class LearningRate {
 public:
  // REQUIRES: base > 0. Errors: InvalidArgument naming the schedule's field:
  // unknown name, a value out of its range, a rate that is no float, a first
  // piecewise value other than `base`, a field that the named schedule does
  // not use.
  static absl::StatusOr<LearningRate> Create(double base,
                                             const ScheduleSpec& spec);

  // The rate after `completed_updates` >= 0 updates. Computed in double;
  // never negative and never beyond the largest float.
  double At(int64_t completed_updates) const;

  // Before any schedule.
  double base() const { return base_; }

  // One line for each schedule, sorted: "cosine: decay_steps, alpha,
  // warmup_steps".
  static std::string DescribeSchedules();

 private:
  // One schedule's formula, without warm-up.
  using Formula = double (*)(double base, const ScheduleSpec& spec,
                             int64_t completed_updates);

  LearningRate(double base, const ScheduleSpec& spec, Formula formula)
      : base_(base), spec_(spec), formula_(formula) {}

  double base_;
  ScheduleSpec spec_;
  Formula formula_;
};

}  // namespace muster

#endif  // COMMON_OPTIMIZER_LEARNING_RATE_H_
