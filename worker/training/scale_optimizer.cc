#include "worker/training/scale_optimizer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optimizer/scale_learning_rate.h"
#include "worker/training/optimizers_of.h"

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

absl::Status CheckUpdateRows(const BatchPlan& shape, int64_t update_rows,
                             int64_t num_examples) {
  if (num_examples == 0 || update_rows <= num_examples) return absl::OkStatus();
  const int64_t workers = update_rows / shape.worker_rows();
  const int64_t batches = workers * shape.worker_batches();
  return absl::InvalidArgumentError(absl::StrCat(
      "input.batch_size: ", workers, " worker(s) with ", shape.worker_batches(),
      " batch(es) of ", shape.batch_size, " want ", update_rows,
      " training examples for one update, the data set has ", num_examples,
      num_examples >= batches
          ? absl::StrCat(": --set=input.batch_size=", num_examples / batches,
                         ", or, where that is set, "
                         "--set=input.global_batch_size=",
                         num_examples / batches * batches)
          : ", fewer than batches: train with fewer workers, towers or "
            "accumulated batches"));
}

absl::StatusOr<std::string> ScaleOptimizer(const BatchPlan& shape,
                                           TrainingSpec* training) {
  const int64_t rows = UpdateRows(training->replication(), shape);
  std::string text;
  for (OptimizerSpec* const optimizer : OptimizersOf(training)) {
    ASSIGN_OR_RETURN(ScaledOptimizer scaled,
                     ScaleLearningRate(*optimizer, rows));
    *optimizer = std::move(scaled.spec);
    absl::StrAppend(&text, text.empty() || scaled.text.empty() ? "" : "; ",
                    scaled.text);
  }
  return text;
}

}  // namespace muster
