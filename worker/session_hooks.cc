#include "worker/session_hooks.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "worker/hook/nan_guard.h"

namespace muster {
namespace {

// Where the training stops by steps or epochs; 0 if by neither.
int64_t TargetStep(const StopSpec& stop, int64_t steps_per_epoch) {
  const auto by_epochs = static_cast<int64_t>(
      stop.epochs() * static_cast<double>(steps_per_epoch));
  if (by_epochs <= 0) return stop.steps();
  return stop.steps() == 0 ? by_epochs : std::min(stop.steps(), by_epochs);
}

std::unique_ptr<Progress> MakeProgress(const SessionHooks::Options& options,
                                       const SessionHooks::Parts& parts) {
  Progress::Options progress = options.progress;
  progress.target_step =
      TargetStep(options.training.stop(), options.steps_per_epoch);
  return std::make_unique<Progress>(progress, parts.write_progress);
}

std::unique_ptr<CheckpointSaver> MakeCheckpointSaver(
    const SessionHooks::Options& options, const SessionHooks::Parts& parts) {
  const CheckpointSpec& checkpoint = options.training.checkpoint();
  CheckpointSaver::Options saving;
  saving.every_steps = checkpoint.every_steps();
  saving.every = absl::Seconds(checkpoint.every_seconds());
  return std::make_unique<CheckpointSaver>(saving, parts.begin_save, parts.say);
}

std::unique_ptr<Evaluation> MakeEvaluation(const SessionHooks::Options& options,
                                           const SessionHooks::Parts& parts) {
  return std::make_unique<Evaluation>(
      options.training.evaluation().every_steps(), parts.evaluate,
      [say = parts.say](absl::string_view text) {
        say(/*is_error=*/false, text);
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionHooks>> SessionHooks::Create(
    const Options& options, const Parts& parts) {
  auto hooks = absl::WrapUnique(new SessionHooks());
  // The order of the calls: worker/hook/README.md says why.
  hooks->Add(std::make_unique<NanGuard>(options.task_name));
  hooks->Add(MakeProgress(options, parts));
  if (!options.chief) return hooks;
  if (options.saves) {
    hooks->checkpoint_saver_ = hooks->Add(MakeCheckpointSaver(options, parts));
  }
  hooks->evaluation_ = hooks->Add(MakeEvaluation(options, parts));
  return hooks;
}

void SessionHooks::SaveNow(std::function<void(const absl::Status&)> done) {
  if (checkpoint_saver_ == nullptr) {
    return done(absl::FailedPreconditionError(
        "the chief has no --train_dir to save to"));
  }
  checkpoint_saver_->SaveNow(std::move(done));
}

std::string SessionHooks::newest_checkpoint() const {
  return checkpoint_saver_ == nullptr ? "" : checkpoint_saver_->newest();
}

std::optional<EvaluationResult> SessionHooks::evaluated() const {
  if (evaluation_ == nullptr) return std::nullopt;
  return evaluation_->result();
}

}  // namespace muster
