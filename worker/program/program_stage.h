#ifndef WORKER_PROGRAM_PROGRAM_STAGE_H_
#define WORKER_PROGRAM_PROGRAM_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/aligned_buffer.h"
#include "proto/program.pb.h"
#include "worker/client/link/shard_link.h"
#include "worker/program/program_steps.h"
#include "worker/session/round_pauser.h"
#include "worker/task/placed_training.h"
#include "worker/task/step_stage.h"
#include "worker/task/worker_job.h"

namespace muster {

// The parameters of a program, and the rows of its steps.
struct TrainedProgram {
  std::vector<ProgramTensor> tensors;
  // The program's own memory, one span a tensor.
  std::vector<absl::Span<float>> values;
  // The rows, as ProgramSpec has them.
  int64_t epoch_rows = 0;
  int64_t step_rows = 0;
  int steps_ahead = 0;
  bool in_order = false;
  std::string settings;
  // By number.
  std::vector<ProgramTable> tables = {};
};

// Places a program's parameters. Errors: InvalidArgument for a step of more
// rows than an epoch; those of PlacedTraining::Create, by which stop.epochs
// without epoch_rows is refused.
absl::StatusOr<std::unique_ptr<PlacedTraining>> PlaceProgram(
    WorkerJob job, const TrainedProgram& model);

// The steps of a program: what WorkerSteps is for a model of layers, without
// towers and data.
class ProgramStage : public StepStage {
 public:
  // `placed`, `model` and `steps` outlive this. The chief copies the values,
  // which a new training begins with. Errors: those of CheckCanKeepTraining and
  // StepStage::Connect.
  static absl::StatusOr<std::unique_ptr<ProgramStage>> Create(
      const PlacedTraining* placed, const TrainedProgram* model,
      ProgramSteps* steps, WorkerLinks links);

  ProgramSteps* runner() const override { return steps_; }
  absl::StatusOr<std::vector<absl::Span<float>>> MakeInitialValues()
      const override {
    return initial_values_;
  }
  // Fills the program's values from the newest checkpoint of the train_dir.
  // Errors: those of CheckpointReader and CheckCompatible.
  absl::Status ReadNewestCheckpoint() const;

 private:
  ProgramStage(const PlacedTraining& placed, const TrainedProgram& model,
               ProgramSteps* steps);

  // Fills the program's values with those that the shards have; the chief, in
  // synchronous replication, with those of the newest round. Errors: those of
  // RoundPauser and PullAndWait, having been reported.
  absl::Status PullLast(int64_t model_epoch);

  const TrainedProgram& model_;
  ProgramSteps* const steps_;
  // Null but for the chief of synchronous replication.
  std::unique_ptr<RoundPauser> rounds_;
  // None but in the chief; in memory_.
  AlignedBuffer memory_;
  std::vector<absl::Span<float>> initial_values_;
};

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_STAGE_H_
