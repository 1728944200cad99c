#ifndef WORKER_TRAINING_TRAINING_CHANGES_H_
#define WORKER_TRAINING_TRAINING_CHANGES_H_

#include <string>
#include <vector>

#include "proto/training.pb.h"

namespace muster {

// A line for each field in which `now` differs from the training that a run had
// `before`, "optimizer.adam.learning_rate: 0.001 -> 0.1", at most some dozens.
// The fields on which the meaning of a step does not depend (those outside
// SemanticPart, and placement) are passed over.
std::vector<std::string> DescribeTrainingChanges(const TrainingSpec& before,
                                                 const TrainingSpec& now);

}  // namespace muster

#endif  // WORKER_TRAINING_TRAINING_CHANGES_H_
