#ifndef WORKER_TASK_SESSION_HOOKS_H_
#define WORKER_TASK_SESSION_HOOKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/base/work_progress.h"
#include "common/checkpoint/write_watch.h"
#include "proto/training.pb.h"
#include "worker/hook/best_keeper.h"
#include "worker/hook/checkpoint_saver.h"
#include "worker/hook/evaluation.h"
#include "worker/hook/evaluation_watch.h"
#include "worker/hook/hook.h"
#include "worker/hook/job_profile.h"
#include "worker/hook/profiler.h"
#include "worker/hook/progress.h"
#include "worker/hook/summary_hooks.h"
#include "worker/hook/watched_evaluations.h"
#include "worker/task/kept_training.h"
#include "worker/training/schedule_length.h"

namespace muster {

// Makes and owns the hooks of one process, in the order in which they are
// called: worker/hook/README.md has the table, and says how to add one.
class SessionHooks {
 public:
  struct Options {
    // For messages: "/job:worker/task:0".
    std::string task_name;
    bool chief = false;
    // Whether the chief has a train_dir to save to.
    bool saves = false;
    // The training, checked.
    TrainingSpec training;
    // The chief, with a half to evaluate: what it wants of evaluations.
    EvaluationWatch::Options watch;
    // For the step at which stop.epochs ends it.
    EpochLength epoch;
    // target_step is overwritten.
    Progress::Options progress;
    // No profile if its steps are none. task_name is overwritten.
    Profiler::Options profile;
    // With `saves`. write_file and reporter are overwritten.
    KeptTraining::Options kept_training;
  };
  // The parts that hooks work with; all of them outlive the hooks.
  struct Parts {
    // Called before all others; may be null.
    Hook* first = nullptr;
    ProgressOutput progress_output;
    // A line for the operator, from any thread.
    Reporter reporter;
    Profiler::Write write_file;
    // The chief's only.
    WriteWatch* write_watch = nullptr;
    CheckpointSaver::Begin begin_save;
    // How long the run has trained at `now`.
    std::function<absl::Duration(absl::Time now)> trained;
    // As CheckpointSaver's.
    std::function<void(const std::string& folder, const EndRecord& end)>
        after_last_save;
    // Null: there is no half to evaluate.
    Evaluation::Evaluate evaluate;
    // The same of a model that can be saved.
    BestKeeper::Evaluate evaluate_cut;
    WatchedEvaluations::Settle settle_evaluations;
    // The test half, beside a validation half; null: none.
    Evaluation::Evaluate evaluate_at_end;
    RequestStop stop_job;
    // Takes part in none without coordination.
    JobProfile::Options job_profile;
    // Outlives the hooks.
    const Clock* clock = SystemClock();
    SummaryParts summaries;
  };

  // Errors: those of the hooks' own making.
  static absl::StatusOr<std::unique_ptr<SessionHooks>> Create(
      const Options& options, const Parts& parts);

  const std::vector<Hook*>& in_order() const { return in_order_; }

  // A checkpoint now; see CheckpointSaver::SaveNow.
  void SaveNow(std::function<void(const absl::Status&)> done);
  // Returns when no checkpoint is being written.
  void WaitForSaves();
  // The folder of the newest checkpoint that this process saved; "" if none.
  std::string newest_checkpoint() const;
  // As Evaluation::results.
  std::vector<EvaluationResult> evaluated() const;
  // Null if nothing is made of evaluations.
  const WatchedEvaluations* watched() const { return watched_; }

 private:
  SessionHooks() = default;

  // The saver and the evaluation, in the order of their calls.
  void AddSaver(const Options& options, const Parts& parts);
  // The factor of the learning rate of an update.
  double RateFactorOf(int64_t update) const;
  // What is made of evaluations, if anything is.
  void AddWatch(const Options& options, const Parts& parts);
  // The evaluation, and what goes by its results.
  void AddEvaluation(const Options& options, const Parts& parts);
  // The images that are shown at each evaluation, too.
  void AddInputImages(const SummarySpec& summary, const SummaryParts& parts);

  // Appends to the order.
  template <typename T>
  T* Add(std::unique_ptr<T> hook) {
    T* const added = hook.get();
    in_order_.push_back(added);
    owned_.push_back(std::move(hook));
    return added;
  }

  // Null without checkpoint.keep_best. The saver's thread calls it.
  std::unique_ptr<BestKeeper> best_keeper_;
  std::vector<std::unique_ptr<Hook>> owned_;
  std::vector<Hook*> in_order_;
  // The hooks of owned_ that are asked; null if this process has none.
  CheckpointSaver* checkpoint_saver_ = nullptr;
  Evaluation* evaluation_ = nullptr;
  WatchedEvaluations* watched_ = nullptr;
};

}  // namespace muster

#endif  // WORKER_TASK_SESSION_HOOKS_H_
