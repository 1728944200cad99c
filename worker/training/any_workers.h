#ifndef WORKER_TRAINING_ANY_WORKERS_H_
#define WORKER_TRAINING_ANY_WORKERS_H_

#include "absl/status/status.h"
#include "common/cluster/cluster_spec.h"
#include "proto/training.pb.h"

namespace muster {

// Checks that a training in a cluster that takes any worker
// (ClusterSpec::takes_any_worker) wants nothing that depends on how many there
// will be: a batch that is divided among them; in sync, whose updates have the
// rows of those that are there, a learning rate for so many rows, or a schedule
// over as many updates as the epochs will have. Any training suits another
// cluster. Errors: InvalidArgument naming the field, with advice.
absl::Status CheckSuitsAnyWorkers(const ClusterSpec& cluster,
                                  const TrainingSpec& training);

}  // namespace muster

#endif  // WORKER_TRAINING_ANY_WORKERS_H_
