#ifndef WORKER_TOWER_BATCH_PLAN_H_
#define WORKER_TOWER_BATCH_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// How many rows a step has, and who computes which.
struct BatchPlan {
  // Rows of one batch: what one tower computes at a time.
  int64_t batch_size = 0;
  // Batches of one tower whose mean gradient is one push.
  int64_t accumulate_batches = 1;
  // Towers of each worker.
  int64_t towers = 1;
  int64_t workers = 1;

  // Batches, and rows, of one push of one worker.
  int64_t worker_batches() const { return towers * accumulate_batches; }
  int64_t worker_rows() const { return worker_batches() * batch_size; }
  // Rows of one push of every worker.
  int64_t global_rows() const { return workers * worker_rows(); }
};

// From input.batch_size, or from input.global_batch_size divided among all
// towers of all workers and the batches that each accumulates. Errors:
// InvalidArgument if it cannot be divided evenly. REQUIRES: a checked spec,
// towers and workers above 0.
absl::StatusOr<BatchPlan> ResolveBatchPlan(const TrainingSpec& training,
                                           int64_t towers, int64_t workers);

}  // namespace muster

#endif  // WORKER_TOWER_BATCH_PLAN_H_
