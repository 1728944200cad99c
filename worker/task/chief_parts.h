#ifndef WORKER_TASK_CHIEF_PARTS_H_
#define WORKER_TASK_CHIEF_PARTS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/train_dir_lock.h"
#include "common/checkpoint/write_watch.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/checkpoint/model_loader.h"
#include "worker/checkpoint/model_saver.h"
#include "worker/executor/compiled_model.h"
#include "worker/session/round_pauser.h"
#include "worker/task/evaluator.h"
#include "worker/task/step_stage.h"
#include "worker/task/worker_options.h"

namespace muster {

// The parts that only a chief has: the train_dir, locked, and what loads, saves
// and evaluates the model. The first stage of a TrainingRun. Each part says
// which threads may use it.
class ChiefParts {
 public:
  // `steps` outlives this. `test_model` evaluates; null where nothing is.
  // Restoring goes on while `go_on` says so. Errors: those of
  // TrainDirLock::Acquire, CleanTrainDir, ProbeTrainDir and
  // InitialWeights::OpenForRun.
  static absl::StatusOr<std::unique_ptr<ChiefParts>> Create(
      const StepStage* steps, std::unique_ptr<CompiledModel> test_model,
      std::function<bool()> go_on);

  // Watches what the chief writes.
  WriteWatch* write_watch() { return write_watch_.get(); }
  FileSystem* file_system() { return file_system_.get(); }
  ModelLoader* loader() { return loader_.get(); }
  // As ModelSaver::Begin, if the train_dir is still this process's.
  absl::StatusOr<PendingSave> BeginSave();
  // Errors: TrainDirLock::CheckHeld's, of a file.
  absl::Status CheckHeld() const;
  ModelSaver* saver() { return saver_.get(); }
  // Evaluates the validation half, or without one the test half; null without
  // either.
  Evaluator* evaluator() { return evaluator_.get(); }
  // Evaluates the test half beside a validation half; null but then.
  Evaluator* evaluator_at_end() { return evaluator_at_end_.get(); }

 private:
  explicit ChiefParts(const StepStage& steps) : steps_(steps) {}

  const WorkerOptions& options() const { return steps_.placed().options(); }

  void CreateWriteWatch();
  absl::Status OpenTrainDir(std::function<bool()> go_on);
  absl::Status CreateLoader();
  void CreateSaver();
  void CreateEvaluators();

  const StepStage& steps_;
  // Null where nothing is evaluated, as evaluator_.
  std::unique_ptr<CompiledModel> test_model_;
  std::unique_ptr<WriteWatch> write_watch_;
  std::unique_ptr<FileSystem> file_system_;
  // The same for what is restored: a stop ends it, and no save.
  std::unique_ptr<FileSystem> restored_files_;
  std::unique_ptr<TrainDirLock> lock_;
  std::unique_ptr<InitialWeights> weights_;
  std::unique_ptr<ModelLoader> loader_;
  // Null but in synchronous replication.
  std::unique_ptr<RoundPauser> rounds_;
  std::unique_ptr<ModelSaver> saver_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Evaluator> evaluator_at_end_;
};

}  // namespace muster

#endif  // WORKER_TASK_CHIEF_PARTS_H_
