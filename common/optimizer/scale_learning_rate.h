#ifndef COMMON_OPTIMIZER_SCALE_LEARNING_RATE_H_
#define COMMON_OPTIMIZER_SCALE_LEARNING_RATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// An optimizer whose learning rate fits the rows of one update.
struct ScaledOptimizer {
  // Without learning_rate_scaling and reference_batch_size: their effect is in
  // the rates.
  OptimizerSpec spec;
  // "learning rate 0.4 = 0.1 x 4 (LINEAR: 256 rows of an update / 64)"; "" if
  // nothing is scaled.
  std::string text;
};

// Carries out spec.learning_rate_scaling. With
// k = update_rows / reference_batch_size, every learning rate of the spec (the
// rule's attribute, piecewise values, a polynomial's end) becomes
//
//   NONE    lr
//   LINEAR  lr * k         Goyal et al., "Accurate, Large Minibatch SGD", 2017
//   SQRT    lr * sqrt(k)   Krizhevsky, "One weird trick for parallelizing
//                          convolutional neural networks", 2014
//
// computed in double. update_rows: those whose mean gradient is one update.
// REQUIRES: update_rows >= 1; link :optimizers.
// Errors: NotFound for an unknown rule; InvalidArgument naming the field if one
// of the two fields is set without the other, reference_batch_size is negative
// or a rate is not a float any more.
absl::StatusOr<ScaledOptimizer> ScaleLearningRate(const OptimizerSpec& spec,
                                                  int64_t update_rows);

}  // namespace muster

#endif  // COMMON_OPTIMIZER_SCALE_LEARNING_RATE_H_
