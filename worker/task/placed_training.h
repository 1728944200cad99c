#ifndef WORKER_TASK_PLACED_TRAINING_H_
#define WORKER_TASK_PLACED_TRAINING_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/optimizer/update_rule.h"
#include "proto/program.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/task/worker_job.h"
#include "worker/tower/batch_plan.h"
#include "worker/training/placed_model.h"
#include "worker/training/schedule_length.h"

namespace muster {

// A worker's training, fitted to the rows of its steps, and its model as it is
// placed on the ps tasks: the third stage of a WorkerTask. Nothing later sees
// the job but through it, and so nobody reads rates that are not yet scaled.
class PlacedTraining {
 public:
  // What is trained, and on how many rows.
  struct Trained {
    absl::Span<const TensorDef> tensors;
    BatchPlan shape;
    // Rows of the training half; 0: not known, as a stream's.
    int64_t num_examples = 0;
    // A program's.
    absl::Span<const ProgramTable> tables = {};
  };
  // The chief reports what was fitted and placed. Errors: those of CheckEpochs,
  // FitScheduleToTraining, ScaleOptimizer, CreateUpdateRule, MakeTableDefs and
  // PlaceModel.
  static absl::StatusOr<std::unique_ptr<PlacedTraining>> Create(
      WorkerJob job, const Trained& trained);

  const WorkerJob& job() const { return job_; }
  const WorkerOptions& options() const { return job_.options; }
  const TrainingSpec& training() const { return job_.options.training; }
  // The shards' rule, and that of towers that update on their device, which it
  // outlives.
  UpdateRule* update_rule() const { return update_rule_.get(); }
  const PlacedModel& model() const { return model_; }
  const EpochLength& epoch() const { return epoch_; }

 private:
  explicit PlacedTraining(WorkerJob job) : job_(std::move(job)) {}

  // Fits the learning rate to the rows of an update and to the length of the
  // training.
  absl::Status FitOptimizer(const BatchPlan& shape, int64_t num_examples);
  absl::Status Place(absl::Span<const TensorDef> tensors,
                     absl::Span<const ProgramTable> tables);

  WorkerJob job_;
  EpochLength epoch_;
  std::unique_ptr<UpdateRule> update_rule_;
  PlacedModel model_;
};

}  // namespace muster

#endif  // WORKER_TASK_PLACED_TRAINING_H_
