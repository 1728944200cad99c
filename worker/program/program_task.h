#ifndef WORKER_PROGRAM_PROGRAM_TASK_H_
#define WORKER_PROGRAM_PROGRAM_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/cluster/task_id.h"
#include "common/process/stop_latch.h"
#include "proto/program.pb.h"
#include "proto/row_ledger.pb.h"
#include "worker/client/link/shard_link.h"
#include "worker/input/data_order.h"
#include "worker/program/program_hook.h"
#include "worker/program/program_stage.h"
#include "worker/program/program_steps.h"
#include "worker/session/training_session.h"
#include "worker/task/health_server.h"
#include "worker/task/placed_training.h"
#include "worker/task/training_run.h"
#include "worker/task/worker_options.h"

namespace muster {

// What a program's worker is made of, read and checked (program_options.h).
struct ProgramOptions {
  // Without model and input in its training; the task may have no number yet
  // (index -1).
  WorkerOptions worker;
  std::vector<ProgramTensor> tensors;
  // The rows, as ProgramSpec has them.
  int64_t epoch_rows = 0;
  int64_t step_rows = 0;
  int steps_ahead = 0;
  bool in_order = false;
  std::string settings;
  std::vector<ProgramTable> tables;
  // Numbers a task that has no number: AcquireIndex, or its certificate's. One
  // still without: its job is at its end, and needs no more workers.
  std::function<absl::StatusOr<TaskId>(const WorkerOptions&)> number_task;
  // Links to the ps tasks, once it has one.
  std::function<absl::StatusOr<WorkerLinks>(const WorkerOptions&)> make_links;
};

// A worker process's part in a training, on a thread of its own, whose
// gradients a program computes on another: what WorkerTask is for a model of
// layers. Thread-safe where it says so.
class ProgramTask {
 public:
  // `values`: one a tensor, its initial ones; they are read and written until
  // Close.
  ProgramTask(ProgramOptions options, std::vector<absl::Span<float>> values);
  // As Close.
  ~ProgramTask();

  // For the program's thread: Await, Give.
  ProgramSteps& steps() { return steps_; }
  // The rows of the data set, by index, of a lease; and their first one's
  // epoch. None if nobody deals rows. For the program's thread.
  std::vector<int64_t> RowsOf(const RowLease& lease, int64_t* epoch);

  // Takes no more steps. Signal 0: this worker is done, and the job ends when
  // all are; else as WorkerTask::RequestStop. Thread-safe.
  void Stop(int signal) ABSL_LOCKS_EXCLUDED(mu_);
  // The chief saves when the next step is counted. Thread-safe.
  void Save() { hook_.Save(); }
  // A figure of the step that is counted next, for the chief's summaries.
  // Thread-safe.
  void Log(absl::string_view name, double value) { hook_.Log(name, value); }

  // Stops first if need be; returns the exit code that a worker would have,
  // having said why if it is not 0. Repeatable.
  int Close() ABSL_LOCKS_EXCLUDED(mu_);
  // Why the exit code is not 0; OK before Close.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Outcome {
    int exit_code = 0;
    absl::Status failure;
  };

  // ---- The session's thread ------------------------------------------------
  void RunSession() ABSL_LOCKS_EXCLUDED(mu_);
  // Errors: of a task that cannot begin.
  absl::StatusOr<Outcome> Train() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CreateStages(WorkerLinks links);
  // Brings what the session could not bring, to a chief whose job is done.
  void RestoreLast();
  Outcome OutcomeOf(const absl::Status& start) const ABSL_LOCKS_EXCLUDED(mu_);
  // Hands the session to those who stop it; null: it is over.
  void SetSession(TrainingSession* session) ABSL_LOCKS_EXCLUDED(mu_);
  void TellStop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction, but for the number of the task.
  ProgramOptions options_;
  const TrainedProgram model_;

  // Own synchronization. The latch ends what waits before there is a session.
  StopLatch latch_;
  ProgramSteps steps_;
  ProgramHook hook_;

  // For the program's thread.
  DataOrder order_;

  // For the session's thread; in the order in which they outlive each other.
  std::unique_ptr<HealthServer> health_;
  std::unique_ptr<PlacedTraining> placed_;
  std::unique_ptr<ProgramStage> stage_;
  std::unique_ptr<TrainingRun> run_;

  mutable absl::Mutex mu_;
  // Null before it runs, and after.
  TrainingSession* session_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::optional<int> stop_ ABSL_GUARDED_BY(mu_);
  Outcome outcome_ ABSL_GUARDED_BY(mu_);

  // Last: all else is there when it begins.
  std::thread thread_;
};

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_TASK_H_
