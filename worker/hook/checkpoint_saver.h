#ifndef WORKER_HOOK_CHECKPOINT_SAVER_H_
#define WORKER_HOOK_CHECKPOINT_SAVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/checkpoint/write_watch.h"
#include "proto/evaluation_history.pb.h"
#include "worker/client/client_model.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"

namespace muster {

// A save whose values are fixed already. Write may run on any thread.
struct PendingSave {
  int64_t global_step = 0;
  // Returns the checkpoint's folder.
  std::function<absl::StatusOr<std::string>()> write;
  // Some of its steps were not reported when it was cut: as many global steps
  // may later be of other ones.
  bool has_unreported = false;
  // Reads the parameters, one view a tensor, before it is written.
  std::function<absl::Status(absl::Span<const MutableTensorView> into)> read;
  // In the place of write, for a model that was evaluated to be the best one:
  // it takes the place of another checkpoint of its step, and its manifest has
  // this history.
  std::function<absl::StatusOr<std::string>(const EvaluationHistory&)>
      write_best;
  // In the place of write: frees the values.
  std::function<void()> discard;
};

// The hook that saves checkpoints: right after an initialization, and when a
// chief comes back to a job that went on without it; every so many global steps
// or seconds, on request, and at the end. Between two steps the values are
// fixed on the shards (one short RPC each); a thread of this hook's own then
// reads and writes them while the training goes on. A save that is due while
// another is being written begins when that one is done.
//
// A save that fails is said once and does not end the training: a new one, of
// the values of then, is begun after retry_after, and after twice the time for
// each further one that fails. Only the save at the end returns its error; it
// is begun anew once, unless the disk is full. A train_dir that is another
// process's now ends the training, too. The training thread calls all but the
// constructor.
class CheckpointSaver : public Hook {
 public:
  struct Options {
    // 0: off.
    int64_t every_steps = 0;
    absl::Duration every = absl::ZeroDuration();
    // The pause after a save that failed; at most ten minutes.
    absl::Duration retry_after = absl::Seconds(10);
    // Synchronous replication: a round may close after the step that the end
    // tells, when a save does not pause rounds any more.
    bool in_rounds = false;
    // Called when the model is saved for the last time, with the checkpoint's
    // folder. Null: nothing is to be done.
    std::function<void(const std::string& folder, const EndRecord& end)>
        after_last_save;
    // Outlives the saver.
    const Clock* clock = SystemClock();
    // Watches the writing; outlives the saver. Null: nobody does.
    WriteWatch* watch = nullptr;
  };
  // Fixes the values of all shards at this instant.
  using Begin = std::function<absl::StatusOr<PendingSave>()>;

  CheckpointSaver(const Options& options, Begin begin, Reporter reporter);
  ~CheckpointSaver() override;

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AtEnd(const EndRecord& end) override;

  // Begins a save at once, whatever the periods say. `done` gets its outcome:
  // from the writing thread, or before the return if the values could not be
  // fixed.
  void SaveNow(std::function<void(const absl::Status&)> done);

  // Fixes the values for what may become a save, when no save is being written.
  // The next begun save ends it. Errors: those of Begin.
  absl::StatusOr<PendingSave> Fix();
  // Writes those of Fix as a save that was due. `done` is SaveNow's.
  void Save(PendingSave save, std::function<void(const absl::Status&)> done);

  // Returns when no save is being written.
  void WaitForWriter();

  // Folder of the newest checkpoint that this process saved; "" if none.
  std::string newest() const;

 private:
  bool IsDue(const StepRecord& step) const;
  bool RetryIsDue(absl::Time now) const;
  absl::Status SaveLast(int64_t global_step);
  absl::Status SaveAtEnd();
  absl::StatusOr<PendingSave> BeginSave();
  bool IsSaved(int64_t global_step) const;
  void Note(const absl::Status& saved);
  void StartSave(int64_t global_step, absl::Time now);
  void Write(PendingSave save, std::function<void(const absl::Status&)> done);
  absl::Status WriteFiles(const PendingSave& save);
  absl::StatusOr<std::string> WriteWatched(const PendingSave& save);
  void SayFailure(int64_t global_step, const absl::Status& status);
  void ThreadLoop();
  bool WriterIsIdle() const;

  const Options options_;
  const Begin begin_;
  const Reporter reporter_;

  // Used by the training thread only.
  StepPeriod period_;
  absl::Time last_time_ = absl::InfinitePast();
  // The train_dir is another process's now.
  absl::Status taken_;

  mutable absl::Mutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool has_work_ ABSL_GUARDED_BY(mu_) = false;
  PendingSave work_ ABSL_GUARDED_BY(mu_);
  // Who waits for work_; may be null.
  std::function<void(const absl::Status&)> work_done_ ABSL_GUARDED_BY(mu_);
  // The global step of the newest save of this epoch, if all its steps were
  // reported by then; else -1.
  int64_t saved_step_ ABSL_GUARDED_BY(mu_) = -1;
  // Saves since the last one that did not fail.
  int failures_ ABSL_GUARDED_BY(mu_) = 0;
  std::string newest_ ABSL_GUARDED_BY(mu_);

  // Last: it uses all the others.
  std::unique_ptr<ClockThread> writer_;
};

}  // namespace muster

#endif  // WORKER_HOOK_CHECKPOINT_SAVER_H_
