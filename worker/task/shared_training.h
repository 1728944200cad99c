#ifndef WORKER_TASK_SHARED_TRAINING_H_
#define WORKER_TASK_SHARED_TRAINING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "worker/task/placed_training.h"
#include "worker/tower/batch_plan.h"

namespace muster {

// "1000 an epoch, shuffled by seed 7": the order in which rows are dealt.
std::string DescribeRowOrder(int64_t epoch_rows, bool shuffled, int64_t seed);

// The text of what all workers of a job have alike, whatever computes their
// gradients: rule, replication, placement, tensors, tables, and rows, which
// `rows` describes; in a mean of several steps the rows of each, too, which all
// count alike.
std::string SharedTrainingText(const PlacedTraining& placed,
                               const BatchPlan& shape, absl::string_view rows);

}  // namespace muster

#endif  // WORKER_TASK_SHARED_TRAINING_H_
