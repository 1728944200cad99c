#include "worker/tower/batch_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<BatchPlan> ResolveBatchPlan(const TrainingSpec& training,
                                           int64_t towers, int64_t workers) {
  BatchPlan shape;
  shape.accumulate_batches =
      std::max<int64_t>(1, training.gradient().accumulate_batches());
  shape.towers = towers;
  shape.workers = workers;
  const InputSpec& input = training.input();
  shape.batch_size = input.batch_size();
  if (input.global_batch_size() == 0) return shape;
  const int64_t batches = workers * shape.worker_batches();
  if (input.global_batch_size() % batches != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.global_batch_size: ", input.global_batch_size(),
        " rows cannot be divided evenly among ", workers, " worker(s) * ",
        towers, " tower(s) * ", shape.accumulate_batches,
        " accumulated batch(es); give a multiple of ", batches));
  }
  shape.batch_size = input.global_batch_size() / batches;
  return shape;
}

}  // namespace muster
