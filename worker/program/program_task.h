#ifndef WORKER_PROGRAM_PROGRAM_TASK_H_
#define WORKER_PROGRAM_PROGRAM_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/program.pb.h"
#include "proto/row_ledger.pb.h"
#include "worker/client/link/shard_link.h"
#include "worker/program/program_steps.h"
#include "worker/task/worker_options.h"

namespace muster {

// What a program's worker is made of, read and checked (program_options.h).
struct ProgramOptions {
  // Without model and input in its training; the task may have no number yet
  // (index -1).
  WorkerOptions worker;
  std::vector<ProgramTensor> tensors;
  // As ProgramSpec's.
  int64_t epoch_rows = 0;
  int64_t step_rows = 0;
  int steps_ahead = 0;
  bool in_order = false;
  // Numbers a task that has no number: AcquireIndex, or its certificate's.
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
  ProgramSteps& steps();
  // The rows of the data set, by index, of a lease; and their first one's
  // epoch. For the program's thread.
  std::vector<int64_t> RowsOf(const RowLease& lease, int64_t* epoch);

  // Takes no more steps. Signal 0: this worker is done, and the job ends when
  // all are; else as WorkerTask::RequestStop. Thread-safe.
  void Stop(int signal);
  // The chief saves soon. Thread-safe.
  void Save();
  // A figure of the newest step, for the chief's summaries. Thread-safe.
  void Log(absl::string_view name, double value);

  // Stops first if need be; returns the exit code that a worker would have,
  // having said why if it is not 0. Repeatable.
  int Close();
  // Why the exit code is not 0; OK before Close.
  absl::Status failure() const;
};

}  // namespace muster

#endif  // WORKER_PROGRAM_PROGRAM_TASK_H_
