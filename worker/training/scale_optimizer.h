#ifndef WORKER_TRAINING_SCALE_OPTIMIZER_H_
#define WORKER_TRAINING_SCALE_OPTIMIZER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/tower/batch_plan.h"

namespace muster {

// Rows whose mean gradient is one update of the parameters. async and bounded
// staleness apply each worker's push alone; sync the mean of
// replicas_to_aggregate pushes, by default of all total_replicas, by default of
// all workers. A step of sync that closes with fewer, because workers are lost,
// has fewer rows: the number stays that of the whole job.
int64_t UpdateRows(const ReplicationSpec& replication, const BatchPlan& shape);

// Errors: InvalidArgument with a batch size that fits, if the data set has
// fewer rows than an update. 0 of either: not known.
absl::Status CheckUpdateRows(const BatchPlan& shape, int64_t update_rows,
                             int64_t num_examples);

// Carries out learning_rate_scaling of the optimizer, and of those of tables,
// for the job's UpdateRows, in the one TrainingSpec that shards, checkpoints,
// curves and fingerprints are made from. Returns the line to print, "" if
// nothing is scaled. Errors: those of ScaleLearningRate.
absl::StatusOr<std::string> ScaleOptimizer(const BatchPlan& shape,
                                           TrainingSpec* training);

}  // namespace muster

#endif  // WORKER_TRAINING_SCALE_OPTIMIZER_H_
