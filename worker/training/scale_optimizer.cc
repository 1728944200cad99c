#include "worker/training/scale_optimizer.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/optimizer/scale_learning_rate.h"

namespace muster {

int64_t UpdateRows(const ReplicationSpec& replication, const BatchPlan& shape) {
  if (!replication.has_sync()) return shape.worker_rows();
  const SyncReplication& sync = replication.sync();
  if (sync.replicas_to_aggregate() > 0) {
    return shape.worker_rows() * sync.replicas_to_aggregate();
  }
  if (sync.total_replicas() > 0) {
    return shape.worker_rows() * sync.total_replicas();
  }
  return shape.global_rows();
}

absl::StatusOr<std::string> ScaleOptimizer(const BatchPlan& shape,
                                           TrainingSpec* training) {
  ASSIGN_OR_RETURN(
      ScaledOptimizer scaled,
      ScaleLearningRate(training->optimizer(),
                        UpdateRows(training->replication(), shape)));
  *training->mutable_optimizer() = std::move(scaled.spec);
  return scaled.text;
}

}  // namespace muster
