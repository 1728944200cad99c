#include "worker/hook/checkpoint_saver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

constexpr absl::Duration kLongestPause = absl::Minutes(10);

}  // namespace

CheckpointSaver::CheckpointSaver(const Options& options, Begin begin,
                                 Reporter reporter)
    : options_(options),
      begin_(std::move(begin)),
      reporter_(std::move(reporter)),
      period_(options_.every_steps),
      writer_(options_.clock->StartThread([this] { ThreadLoop(); })) {}

CheckpointSaver::~CheckpointSaver() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  writer_.reset();
}

absl::Status CheckpointSaver::AfterEnter(const EpochRecord& epoch) {
  period_.Start(epoch.global_step);
  last_time_ = epoch.now;
  {
    // The job may have gone back: its steps to come are others than those that
    // were saved under the same numbers.
    absl::MutexLock lock(&mu_);
    saved_step_ = -1;
  }
  if (epoch.initialized || epoch.attached) {
    StartSave(epoch.global_step, epoch.now);
  }
  return taken_;
}

absl::Status CheckpointSaver::AfterStep(const StepRecord& step) {
  if (IsDue(step) && WriterIsIdle()) StartSave(step.global_step, step.now);
  return taken_;
}

absl::Status CheckpointSaver::AtEnd(const EndRecord& end) {
  WaitForWriter();
  // A diverged model must not become the checkpoint that a restart takes.
  if (end.failed || end.is_discarded) return absl::OkStatus();
  RETURN_IF_ERROR(SaveLast(end.global_step));
  if (options_.after_last_save) options_.after_last_save(newest(), end);
  return absl::OkStatus();
}

absl::Status CheckpointSaver::SaveLast(int64_t global_step) {
  if (!options_.in_rounds && IsSaved(global_step)) return absl::OkStatus();
  absl::Status saved = SaveAtEnd();
  if (!saved.ok() && taken_.ok() && !absl::IsResourceExhausted(saved)) {
    reporter_.Error(absl::StrCat(saved.message(), "; saving once more"));
    saved = SaveAtEnd();
  }
  return saved;
}

absl::StatusOr<PendingSave> CheckpointSaver::BeginSave() {
  absl::StatusOr<PendingSave> save = begin_();
  if (IsTaken(save.status())) taken_ = save.status();
  return save;
}

absl::Status CheckpointSaver::SaveAtEnd() {
  absl::StatusOr<PendingSave> save = BeginSave();
  if (!save.ok()) return Annotate(save.status(), "final save");
  if (options_.in_rounds && IsSaved(save->global_step)) return absl::OkStatus();
  return Annotate(WriteFiles(*save), "final save");
}

bool CheckpointSaver::IsSaved(int64_t global_step) const {
  absl::MutexLock lock(&mu_);
  return saved_step_ == global_step;
}

std::string CheckpointSaver::newest() const {
  absl::MutexLock lock(&mu_);
  return newest_;
}

bool CheckpointSaver::IsDue(const StepRecord& step) const {
  if (period_.IsOver(step.global_step)) return true;
  if (options_.every > absl::ZeroDuration() &&
      step.now - last_time_ >= options_.every) {
    return true;
  }
  return RetryIsDue(step.now);
}

bool CheckpointSaver::RetryIsDue(absl::Time now) const {
  absl::MutexLock lock(&mu_);
  if (failures_ == 0) return false;
  absl::Duration pause = options_.retry_after;
  for (int i = 1; i < failures_ && pause < kLongestPause; ++i) pause *= 2;
  return now - last_time_ >= std::min(pause, kLongestPause);
}

void CheckpointSaver::Note(const absl::Status& saved) {
  absl::MutexLock lock(&mu_);
  failures_ = saved.ok() ? 0 : failures_ + 1;
}

void CheckpointSaver::StartSave(int64_t global_step, absl::Time now) {
  WaitForWriter();
  period_.Start(global_step);
  last_time_ = now;
  absl::StatusOr<PendingSave> save = BeginSave();
  if (!taken_.ok()) return;
  if (!save.ok()) {
    Note(save.status());
    return SayFailure(global_step, save.status());
  }
  Write(*std::move(save), nullptr);
}

void CheckpointSaver::SaveNow(std::function<void(const absl::Status&)> done) {
  absl::StatusOr<PendingSave> save = Fix();
  if (!save.ok()) {
    SayFailure(period_.last_step(), save.status());
    return done(save.status());
  }
  Save(*std::move(save), std::move(done));
}

absl::StatusOr<PendingSave> CheckpointSaver::Fix() {
  WaitForWriter();
  return BeginSave();
}

void CheckpointSaver::Save(PendingSave save,
                           std::function<void(const absl::Status&)> done) {
  period_.Start(save.global_step);
  last_time_ = options_.clock->Now();
  Write(std::move(save), std::move(done));
}

void CheckpointSaver::Write(PendingSave save,
                            std::function<void(const absl::Status&)> done) {
  absl::MutexLock lock(&mu_);
  work_ = std::move(save);
  work_done_ = std::move(done);
  has_work_ = true;
}

absl::Status CheckpointSaver::WriteFiles(const PendingSave& save) {
  const absl::StatusOr<std::string> folder = WriteWatched(save);
  if (!folder.ok()) return folder.status();
  reporter_.Info(absl::StrCat("saved ", *folder));
  absl::MutexLock lock(&mu_);
  saved_step_ = save.has_unreported ? -1 : save.global_step;
  newest_ = *folder;
  return absl::OkStatus();
}

absl::StatusOr<std::string> CheckpointSaver::WriteWatched(
    const PendingSave& save) {
  if (options_.watch == nullptr) return save.write();
  return options_.watch->Watch(absl::StrCat("save of step ", save.global_step),
                               save.write);
}

// For a save that the training does not depend on.
void CheckpointSaver::SayFailure(int64_t global_step,
                                 const absl::Status& status) {
  if (status.ok()) return;
  reporter_.Error(
      absl::StrCat("checkpoint at step ", global_step,
                   " not saved, training goes on: ", status.message()));
}

void CheckpointSaver::ThreadLoop() {
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stop_ || has_work_;
  };
  while (true) {
    PendingSave save;
    {
      absl::MutexLock lock(&mu_);
      options_.clock->Await(&mu_, absl::Condition(&awake),
                            absl::InfiniteDuration());
      if (!has_work_) return;
      save = work_;
    }
    const absl::Status written = WriteFiles(save);
    Note(written);
    SayFailure(save.global_step, written);
    std::function<void(const absl::Status&)> done;
    {
      absl::MutexLock lock(&mu_);
      has_work_ = false;
      work_ = {};
      done = std::exchange(work_done_, nullptr);
    }
    if (done != nullptr) done(written);
  }
}

bool CheckpointSaver::WriterIsIdle() const {
  absl::MutexLock lock(&mu_);
  return !has_work_;
}

void CheckpointSaver::WaitForWriter() {
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !has_work_;
  };
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_, absl::Condition(&idle), absl::InfiniteDuration());
}

}  // namespace muster
