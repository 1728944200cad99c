#ifndef WORKER_CHECKPOINT_CHECKPOINT_FOLLOWER_H_
#define WORKER_CHECKPOINT_CHECKPOINT_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/reporter.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "common/process/stop_latch.h"
#include "worker/checkpoint/checkpoint_queue.h"
#include "worker/hook/evaluation.h"

namespace muster {

// The evaluator's loop: looks into a train_dir every second, has each new whole
// checkpoint evaluated, and ends with the job. It only reads there, and needs
// no lock: a checkpoint comes by one rename and goes at any time, which is a
// line, not the end. One thread.
class CheckpointFollower {
 public:
  struct Options {
    std::string train_dir;
    absl::Duration look_every = absl::Seconds(1);
    // A checkpoint whose every byte has been checked. Cancelled if
    // `interrupted` was stopped meanwhile; FailedPrecondition if it belongs to
    // another model.
    std::function<absl::StatusOr<EvaluationResult>(const CheckpointReader&)>
        evaluate;
    // Gets each result.
    std::function<void(const CheckpointReader&, const EvaluationResult&)>
        report;
    // A checkpoint in which no row has finite outputs does not end it.
    bool allow_non_finite = false;
    Reporter reporter;
    // All outlive this. `job` is stopped when the job is done (0: what is there
    // is still evaluated) or lost; `interrupted` by a signal, which waits for
    // nothing.
    FileSystem* file_system = nullptr;
    StopLatch* job = nullptr;
    StopLatch* interrupted = nullptr;
  };

  explicit CheckpointFollower(Options options);

  // Returns the exit code: that of the latch, or kExitBadCheckpoint for a
  // train_dir of another model or of a newer version, or kExitFailed for a
  // model whose outputs are not finite for any row.
  int Run();

 private:
  // Brings the queue up to date.
  void Look();
  // Evaluates all that waits. Errors: those that end the task; Cancelled.
  absl::Status EvaluateWaiting();
  absl::Status EvaluateOne(const FoundCheckpoint& checkpoint);
  absl::StatusOr<EvaluationResult> Evaluate(const std::string& path);
  void SayOnce(absl::string_view text);
  std::string PathOf(int64_t global_step) const;

  const Options options_;
  CheckpointQueue queue_;
  // SayOnce's last line.
  std::string said_;
  int64_t evaluated_ = 0;
};

}  // namespace muster

#endif  // WORKER_CHECKPOINT_CHECKPOINT_FOLLOWER_H_
