#ifndef WORKER_TRAINING_OPTIMIZERS_OF_H_
#define WORKER_TRAINING_OPTIMIZERS_OF_H_

#include <vector>

#include "proto/training.pb.h"

namespace muster {

// The model's optimizer, then those that tables have of their own: whatever is
// done to the first one by the rows or the length of a training is done to all.
inline std::vector<OptimizerSpec*> OptimizersOf(TrainingSpec* training) {
  std::vector<OptimizerSpec*> optimizers = {training->mutable_optimizer()};
  for (TableSpec& table : *training->mutable_table()) {
    if (table.has_optimizer()) optimizers.push_back(table.mutable_optimizer());
  }
  return optimizers;
}

}  // namespace muster

#endif  // WORKER_TRAINING_OPTIMIZERS_OF_H_
