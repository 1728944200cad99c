#include "worker/task/session_hooks.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/status_macros.h"
#include "common/optimizer/learning_rate_factor.h"
#include "worker/hook/hook_registry.h"
#include "worker/hook/input_images.h"
#include "worker/hook/nan_guard.h"
#include "worker/hook/stop_conditions.h"
#include "worker/training/schedule_length.h"

namespace muster {
namespace {

std::unique_ptr<NanGuard> MakeNanGuard(const SessionHooks::Options& options,
                                       const SessionHooks::Parts& parts) {
  NanGuard::Options guard;
  guard.task_name = options.task_name;
  guard.max_refusals = options.training.non_finite().max_refusals();
  if (options.chief) guard.stop_job = parts.stop_job;
  guard.reporter = parts.reporter;
  return std::make_unique<NanGuard>(std::move(guard));
}

std::unique_ptr<StopConditions> MakeStopConditions(
    const SessionHooks::Options& options, const SessionHooks::Parts& parts) {
  StopConditions::Options stop;
  stop.after = absl::Seconds(options.training.stop().seconds());
  stop.trained = parts.trained;
  stop.target_accuracy = options.training.stop().target_accuracy();
  return std::make_unique<StopConditions>(stop, parts.stop_job);
}

std::unique_ptr<Progress> MakeProgress(const SessionHooks::Options& options,
                                       const SessionHooks::Parts& parts) {
  Progress::Options progress = options.progress;
  progress.target_step =
      UpdatesUntilStop(options.training.stop(), options.epoch);
  return std::make_unique<Progress>(progress, parts.progress_output);
}

std::unique_ptr<Profiler> MakeProfiler(const SessionHooks::Options& options,
                                       const SessionHooks::Parts& parts) {
  Profiler::Options profile = options.profile;
  profile.task_name = options.task_name;
  return std::make_unique<Profiler>(profile, parts.write_file, parts.reporter);
}

std::unique_ptr<KeptTraining> MakeKeptTraining(
    const SessionHooks::Options& options, const SessionHooks::Parts& parts) {
  KeptTraining::Options kept = options.kept_training;
  kept.write_file = parts.write_file;
  kept.reporter = parts.reporter;
  return std::make_unique<KeptTraining>(std::move(kept));
}

std::unique_ptr<CheckpointSaver> MakeCheckpointSaver(
    const SessionHooks::Options& options, const SessionHooks::Parts& parts) {
  const CheckpointSpec& checkpoint = options.training.checkpoint();
  CheckpointSaver::Options saving;
  saving.every_steps = checkpoint.every_steps();
  saving.every = absl::Seconds(checkpoint.every_seconds());
  saving.in_rounds = options.training.replication().has_sync();
  saving.watch = parts.write_watch;
  saving.after_last_save = parts.after_last_save;
  return std::make_unique<CheckpointSaver>(
      saving, WriteSummariesFirst(parts.summaries.writer, parts.begin_save),
      parts.reporter);
}

std::unique_ptr<Evaluation> MakeEvaluation(const SessionHooks::Options& options,
                                           const SessionHooks::Parts& parts,
                                           Evaluation::Evaluate evaluate) {
  return std::make_unique<Evaluation>(
      options.training.evaluation().every_steps(), std::move(evaluate),
      parts.reporter,
      options.training.non_finite().allow() ? nullptr : parts.stop_job);
}

// Stands before an evaluation that the saver comes after: at the end none that
// is slow or fails loses work. The saver's own AtEnd tells how it went.
class SaveFirst : public Hook {
 public:
  explicit SaveFirst(CheckpointSaver* saver) : saver_(saver) {}

  absl::Status AtEnd(const EndRecord& end) override {
    if (end.completed) saver_->AtEnd(end).IgnoreError();
    return absl::OkStatus();
  }

 private:
  CheckpointSaver* const saver_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SessionHooks>> SessionHooks::Create(
    const Options& options, const Parts& parts) {
  auto hooks = absl::WrapUnique(new SessionHooks());
  // The order of the calls: worker/hook/README.md says why.
  if (parts.first != nullptr) hooks->in_order_.push_back(parts.first);
  if (!options.training.non_finite().allow()) {
    hooks->Add(MakeNanGuard(options, parts));
  }
  hooks->Add(MakeProgress(options, parts));
  ASSIGN_OR_RETURN(
      auto registered,
      MakeRegisteredHooks({options.training, options.task_name, options.chief,
                           parts.reporter, parts.stop_job}));
  for (auto& hook : registered) hooks->Add(std::move(hook));
  if (options.profile.steps.count > 0) hooks->Add(MakeProfiler(options, parts));
  if (parts.job_profile.coordination != nullptr) {
    hooks->Add(std::make_unique<JobProfile>(parts.job_profile, parts.clock,
                                            parts.reporter));
  }
  if (!options.chief) return hooks;
  SummaryParts summaries = parts.summaries;
  summaries.rate_factor = [made = hooks.get()](int64_t update) {
    return made->RateFactorOf(update);
  };
  ASSIGN_OR_RETURN(auto summary_hooks,
                   MakeSummaryHooks(options.training, summaries));
  for (auto& hook : summary_hooks) hooks->Add(std::move(hook));
  hooks->AddSaver(options, parts);
  hooks->AddInputImages(options.training.summary(), parts.summaries);
  return hooks;
}

void SessionHooks::AddSaver(const Options& options, const Parts& parts) {
  if (!options.saves) return AddEvaluation(options, parts);
  Add(MakeKeptTraining(options, parts));
  auto saver = MakeCheckpointSaver(options, parts);
  checkpoint_saver_ = saver.get();
  if (parts.evaluate == nullptr ||
      !options.training.checkpoint().has_keep_best()) {
    Add(std::move(saver));
    return AddEvaluation(options, parts);
  }
  best_keeper_ = std::make_unique<BestKeeper>(
      checkpoint_saver_, parts.evaluate_cut, parts.reporter);
  Add(std::make_unique<SaveFirst>(checkpoint_saver_));
  AddEvaluation(options, parts);
  // The best model is a save that is due, too: it is not saved twice.
  Add(std::move(saver));
}

double SessionHooks::RateFactorOf(int64_t update) const {
  return watched_ == nullptr ? 1
                             : LearningRateFactor(watched_->history(), update);
}

void SessionHooks::AddWatch(const Options& options, const Parts& parts) {
  auto watched = std::make_unique<WatchedEvaluations>(
      options.watch, options.training.evaluation().every_steps(),
      parts.reporter, parts.stop_job);
  if (!watched->is_on()) return;
  watched_ = Add(std::move(watched));
  if (best_keeper_ != nullptr) {
    watched_->KeepBest(best_keeper_.get(), parts.settle_evaluations);
  }
}

void SessionHooks::AddEvaluation(const Options& options, const Parts& parts) {
  if (parts.evaluate == nullptr) {
    Add(MakeStopConditions(options, parts));
    return;
  }
  AddWatch(options, parts);
  evaluation_ = Add(MakeEvaluation(
      options, parts,
      best_keeper_ == nullptr ? parts.evaluate : [keeper = best_keeper_.get()] {
        return keeper->EvaluateNow();
      }));
  evaluation_->set_evaluate_at_end(parts.evaluate_at_end);
  if (watched_ != nullptr) {
    evaluation_->SetCounted(
        [this] { return watched_->history().global_step(); });
    evaluation_->AddListener(
        [this](int64_t global_step, const EvaluationResult& result) {
          watched_->OnEvaluation(global_step, result);
        });
  }
  StopConditions* const stop = Add(MakeStopConditions(options, parts));
  evaluation_->AddListener(
      [stop](int64_t global_step, const EvaluationResult& result) {
        static_cast<void>(global_step);
        stop->OnEvaluation(result);
      });
  if (parts.summaries.writer == nullptr) return;
  evaluation_->AddListener(
      MakeEvaluationSummaries(parts.summaries.writer, parts.reporter));
}

void SessionHooks::AddInputImages(const SummarySpec& summary,
                                  const SummaryParts& parts) {
  auto hook = MakeInputImages(summary, parts);
  if (hook == nullptr) return;
  InputImages* const images = Add(std::move(hook));
  if (evaluation_ == nullptr) return;
  evaluation_->AddListener(
      [images](int64_t global_step, const EvaluationResult& result) {
        static_cast<void>(result);
        images->Write(global_step);
      });
}

void SessionHooks::SaveNow(std::function<void(const absl::Status&)> done) {
  if (checkpoint_saver_ == nullptr) {
    return done(absl::FailedPreconditionError(
        "the chief has no --train_dir to save to"));
  }
  checkpoint_saver_->SaveNow(std::move(done));
}

void SessionHooks::WaitForSaves() {
  if (checkpoint_saver_ != nullptr) checkpoint_saver_->WaitForWriter();
}

std::string SessionHooks::newest_checkpoint() const {
  return checkpoint_saver_ == nullptr ? "" : checkpoint_saver_->newest();
}

std::vector<EvaluationResult> SessionHooks::evaluated() const {
  if (evaluation_ == nullptr) return {};
  return evaluation_->results();
}

}  // namespace muster
