#ifndef WORKER_TASK_TRAINING_RUN_H_
#define WORKER_TASK_TRAINING_RUN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/summary/event_file_writer.h"
#include "worker/executor/compiled_model.h"
#include "worker/hook/hook.h"
#include "worker/session/training_session.h"
#include "worker/task/chief_parts.h"
#include "worker/task/health_server.h"
#include "worker/task/run_files.h"
#include "worker/task/session_hooks.h"
#include "worker/task/step_stage.h"
#include "worker/task/worker_hooks.h"

namespace muster {

// The stages of a task after those that can make its steps, whoever makes them:
//
//   stage           owns                                made from
//   ChiefParts      train_dir, loader, saver,           steps, test model
//                   evaluator
//   RunFiles        result.json and the like            steps, chief
//   WorkerHooks     hooks, summaries                    steps, chief, files
//   session         the run                             all of them
class TrainingRun {
 public:
  // The stages before; all but `test_model` outlive the run.
  struct Task {
    const StepStage* steps = nullptr;
    // Evaluates; null where nothing is.
    std::unique_ptr<CompiledModel> test_model;
    // Null if nobody asks.
    HealthServer* health = nullptr;
    // As SessionHooks::Parts'.
    Hook* first_hook = nullptr;
  };
  // Errors: those of ChiefParts::Create and WorkerHooks::Create.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Create(Task task);
  ~TrainingRun();

  TrainingSession& session() { return *session_; }
  SessionHooks& hooks() { return *hooks_->hooks(); }
  // Null if nothing is written for TensorBoard.
  EventFileWriter* summaries() const { return hooks_->summaries(); }

 private:
  TrainingRun() = default;

  // Made last and gone first; the others look whether it is there.
  std::unique_ptr<TrainingSession> session_;

  // In the order in which they outlive each other. Null but in the chief.
  std::unique_ptr<ChiefParts> chief_;
  std::unique_ptr<RunFiles> files_;
  std::unique_ptr<WorkerHooks> hooks_;
};

}  // namespace muster

#endif  // WORKER_TASK_TRAINING_RUN_H_
