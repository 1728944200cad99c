#include "worker/session/end_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/stopped_error.h"
#include "common/cluster/task_id.h"
#include "common/process/exit_code.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

// Begins the reason that a job ends for if its chief has failed.
constexpr absl::string_view kFailed = "failed: ";
// The reason of the hook that ends a job whose numbers are not finite.
constexpr absl::string_view kNonFinite = "non_finite";

// A lost reply to Finish is most often a ps that has exited, as it should.
constexpr int kFinishAttempts = 3;
// In 5.5 s, so that a ps task 0 that has died is back, and one message may be
// lost: nobody else would tell it that the job is over.
constexpr int kChiefFinishAttempts = 10;
// How long a chief that has finished looks whether the job is DONE: longer than
// ps task 0 waits for who has never come, and by default for a worker that
// stands still. A ps task 0 that is replaced meanwhile is told.
constexpr absl::Duration kEndWait = absl::Seconds(35);
// How long a signalled chief waits for the others' last steps: with its own
// step before and the save after it, the end is to come within 10 s.
constexpr absl::Duration kDrainWait = absl::Seconds(5);

// How long a chief that is done waits for workers that have not come: one of
// few steps may be done before another, started with it, has come.
constexpr absl::Duration kComing = absl::Seconds(10);

// After so long ps tasks have left, or died: they neither drain nor start as
// slowly beside the task that tells the end; and a supervisor that starts tasks
// anew has done so, or one host after another.
constexpr absl::Duration kGone = absl::Seconds(10);
constexpr absl::Duration kGoneForGood = absl::Seconds(20);

std::string DescribeEarlierEnd(const JobState& state) {
  return absl::StrCat("the job was over before this task came (",
                      state.stop_reason(), ", at step ", state.global_step(),
                      ")");
}

}  // namespace

bool HasTooFewReplicas(const JobState& state) {
  return absl::StrContains(state.stop_reason(), kTooFewReplicas);
}

bool HasFinished(const JobState& state, const TaskId& task) {
  return std::any_of(state.workers().begin(), state.workers().end(),
                     [&task](const WorkerState& worker) {
                       return worker.sender().task() == task &&
                              worker.finished();
                     });
}

bool IsDrained(const JobState& state, const TaskId& task) {
  return std::any_of(state.workers().begin(), state.workers().end(),
                     [&task](const WorkerState& worker) {
                       return worker.sender().task() == task &&
                              worker.is_drained();
                     });
}

bool MaySave(const JobState& state, const TaskId& chief) {
  return std::any_of(state.workers().begin(), state.workers().end(),
                     [&chief](const WorkerState& worker) {
                       return worker.sender().task() == chief &&
                              !worker.lost() &&
                              (!worker.finished() || worker.awaited());
                     });
}

std::vector<TaskId> UnfinishedOthers(const JobState& state,
                                     const TaskId& self) {
  std::vector<TaskId> unfinished;
  for (const WorkerState& worker : state.workers()) {
    const TaskId& task = worker.sender().task();
    if (task == self) continue;
    // A worker known only from a manifest has no process yet.
    if (worker.sender().incarnation() == 0) continue;
    if (worker.finished() || worker.lost()) continue;
    unfinished.push_back(task);
  }
  return unfinished;
}

// ---- Why ----------------------------------------------------------------

void EndMachine::OnSignal(int signal, absl::Time now) {
  signal_ = signal;
  drain_until_ = now + kDrainWait;
}

void EndMachine::OnStop(const StopEvent& event) {
  if (!options_.chief || !stop_reason_.empty()) return;
  stop_reason_ = event.reason;
  stop_failure_ = event.failure;
}

std::string EndMachine::StopReason(const JobState& state,
                                   absl::Time now) const {
  if (!stop_reason_.empty() || !options_.chief || !is_done()) {
    return stop_reason_;
  }
  const auto came = std::count_if(
      state.workers().begin(), state.workers().end(),
      [](const auto& worker) { return worker.sender().incarnation() != 0; });
  const bool may_come =
      came < options_.listed_workers && now < done_at_ + kComing;
  const bool is_last =
      !may_come && UnfinishedOthers(state, options_.self).empty();
  return is_last ? "done" : "";
}

// ---- A job that was over before -----------------------------------------

void EndMachine::OnRegistered(const JobState& state) {
  came_in_time_ |= state.phase() != DONE;
}

// A finished run that is started again has nothing to do, which looks like a
// failure to train unless it is said.
std::string EndMachine::SayFinishedBefore(const JobState& state) {
  const bool is_over =
      state.phase() == STOPPING || (state.phase() == DONE && came_in_time_);
  if (!is_over || !IsStopCondition(state.stop_reason()) || has_begun_step_ ||
      said_finished_before_) {
    return "";
  }
  said_finished_before_ = true;
  return absl::StrCat("the training was finished already: step ",
                      state.global_step(), ", by stop.", state.stop_reason());
}

std::optional<Exit> EndMachine::ExitOfFailedJob(const JobState& state) const {
  const bool has_failed = absl::StartsWith(state.stop_reason(), kFailed) ||
                          state.stop_reason() == kNonFinite;
  if (HasFailure() || !has_failed) return std::nullopt;
  return Exit{kExitFailed,
              absl::StrCat("the job has ended before: ", state.stop_reason())};
}

// The chief is here without its last save if ps task 0 did not hear of it for
// too long, or had a Finish that was not its own; the shards may still be
// there.
std::optional<Exit> EndMachine::ExitOfDoneJob(const JobState& state) const {
  if (HasTooFewReplicas(state)) {
    return Exit{kExitRetryable, state.stop_reason()};
  }
  if (options_.chief || !came_in_time_) {
    if (auto failed = ExitOfFailedJob(state)) return failed;
  }
  if (!options_.chief && state.unsaved()) {
    return Exit{kExitRetryable,
                DescribeUnsavedEnd(TaskName(options_.chief_task))};
  }
  const bool is_done = !options_.chief || HasFinished(state, options_.self);
  if (is_done && !came_in_time_ && !IsReached(options_.goal, state)) {
    return ExitTooLate(state);
  }
  if (is_done && (!options_.chief || IsSaved(state))) {
    return Exit{kExitDone, ""};
  }
  return std::nullopt;
}

// An earlier start of this chief has done so, or there is nothing to save: a
// new start of ps task 0 that was told of the end has no model.
bool EndMachine::IsSaved(const JobState& state) const {
  return !options_.saves || state.stop_reason() == kDiscardedByOperator ||
         options_.saved_step == state.global_step() ||
         (!came_in_time_ && state.model_epoch() == 0);
}

// A ps that is lost before the last save wants its workers back. A lost chief
// may have left the end on no disk.
absl::Duration EndMachine::PatienceForPs(const JobState& state) const {
  if (!options_.finished.empty()) {
    return options_.chief ? kGone : kGoneForGood;
  }
  if (options_.chief || state.phase() != STOPPING) {
    return absl::InfiniteDuration();
  }
  if (MaySave(state, options_.chief_task)) return kGoneForGood;
  return state.unsaved() ? absl::InfiniteDuration() : kGone;
}

Exit EndMachine::ExitWithoutPs(const JobState& state) const {
  if (HasTooFewReplicas(state)) return {kExitRetryable, state.stop_reason()};
  return {kExitDone, "", /*without_ps=*/true};
}

std::string EndMachine::DescribeGonePs(const JobState& state,
                                       absl::string_view missing) const {
  return absl::StrCat(
      options_.finished.empty()
          ? absl::StrCat("the job has reached its end (", state.stop_reason(),
                         ", at step ", state.global_step(), ")")
          : absl::StrCat("the training was finished already: ",
                         options_.finished),
      ", and its ps tasks have left: ", missing);
}

std::string EndMachine::DescribeLateness(const JobState& state) const {
  return came_in_time_ || said_finished_before_ ? ""
                                                : DescribeEarlierEnd(state);
}

// A ps that keeps serving has another job; one that was stopped goes on with
// new ps tasks.
Exit EndMachine::ExitTooLate(const JobState& state) const {
  const int code =
      IsStopCondition(state.stop_reason()) ? kExitBadConfig : kExitRetryable;
  return {
      code,
      absl::StrCat(DescribeEarlierEnd(state), ", and ", Describe(options_.goal),
                   " of this training is not reached; a ps serves one "
                   "job: start the ps tasks anew to train")};
}

// ---- The last save ------------------------------------------------------

RunFinal EndMachine::Save(bool completed, absl::string_view stop_reason) {
  completed_ = completed;
  return {completed, std::string(stop_reason), /*failed=*/HasFailure(),
          /*is_discarded=*/stop_reason == kDiscardedByOperator};
}

void EndMachine::OnSaved(const absl::Status& status) {
  const bool is_stopped = IsStopped(status);
  save_status_ = is_stopped ? absl::OkStatus() : status;
  // Started again, the task has the evaluation still to make.
  completed_ &= !is_stopped;
}

void EndMachine::ForgetSave() {
  completed_ = false;
  save_status_.reset();
}

Say EndMachine::GiveUpSave() {
  lacks_save_ = true;
  return {"ending without a last save: a ps task was lost", /*is_error=*/true};
}

std::optional<Say> EndMachine::SayFailedSave() const {
  if (!save_status_.has_value() || save_status_->ok()) return std::nullopt;
  return Say{std::string(save_status_->message()), /*is_error=*/true};
}

bool EndMachine::IsCompleted() const {
  return completed_ && save_status_.has_value() && save_status_->ok();
}

Exit EndMachine::ExitWithoutSave(absl::string_view why) {
  return {kExitRetryable,
          absl::StrCat("the job is done, but its last save is missing, and "
                       "now it is too late (",
                       why,
                       "); started again, the job goes on from the newest "
                       "checkpoint")};
}

// ---- The way out --------------------------------------------------------

Exit EndMachine::ExitOfCompleted() const {
  absl::Status failure = stop_failure_;
  failure.Update(*save_status_);
  if (failure.ok()) return {kExitDone, ""};
  std::string text(failure.message());
  if (!save_status_->ok() && !options_.standalone) {
    absl::StrAppend(&text,
                    "; the ps tasks keep the model for --worker_timeout, in "
                    "which another start of this task saves it");
  }
  if (IsTaken(failure)) return {kExitBadCheckpoint, std::move(text)};
  // There may be room again, and ps task 0 keeps the model for a while.
  const int code =
      absl::IsResourceExhausted(failure) ? kExitRetryable : kExitFailed;
  return {code, std::move(text)};
}

Exit EndMachine::ExitOfSignal() const {
  return {128 + signal_, absl::StrCat("stopped by signal ", signal_)};
}

SendFinish EndMachine::Stay(const JobState& state) {
  const auto first_ps = state.ps_incarnations().find(0);
  SendFinish finish{"done", /*stop_job=*/false};
  finish.stays = true;
  finish.model_epoch = state.model_epoch();
  finish.ps_incarnation =
      first_ps == state.ps_incarnations().end() ? 0 : first_ps->second;
  return finish;
}

SendFinish EndMachine::FinishDone() {
  return Finish("done", /*stop_job=*/false, {kExitDone, ""});
}

SendFinish EndMachine::FinishCompleted() {
  return Finish("done", /*stop_job=*/false, ExitOfCompleted());
}

SendFinish EndMachine::FinishSignalled() {
  return Finish("interrupted", /*stop_job=*/options_.chief, ExitOfSignal());
}

SendFinish EndMachine::FinishFailed(Exit exit) {
  const std::string reason = absl::StrCat(kFailed, exit.text);
  return Finish(reason, /*stop_job=*/options_.chief, std::move(exit));
}

SendFinish EndMachine::Finish(absl::string_view reason, bool stop_job,
                              Exit exit) {
  exit_ = std::move(exit);
  const bool is_unsaved =
      lacks_save_ || (save_status_.has_value() && !save_status_->ok());
  finish_ = SendFinish{std::string(reason), stop_job, is_unsaved};
  return *finish_;
}

// A chief stays until the job is DONE: for a while ps task 0 may wait for a
// worker that is still to come, and would it die, nobody else could tell its
// next start that the job is over.
std::optional<Exit> EndMachine::OnFinished(
    const absl::StatusOr<FinishReply>& reply, absl::Time now) {
  if (!reply.ok()) return OnFinishFailed(reply.status());
  finish_until_ = std::min(finish_until_, now + kEndWait);
  const bool stays = options_.chief && exit_.code == kExitDone &&
                     signal_ == 0 && reply->state().phase() == STOPPING &&
                     now < finish_until_;
  if (!stays) return exit_;
  attempts_ = 0;
  return std::nullopt;
}

std::optional<Exit> EndMachine::OnFinishFailed(const absl::Status& status) {
  if (auto yielded = Yield(status)) return yielded;
  if (!IsUnknownToNewPs(status)) {
    return IsLastAttempt() ? std::optional<Exit>(exit_) : std::nullopt;
  }
  // As often as it is restarted.
  attempts_ = 0;
  finish_until_ = absl::InfiniteFuture();
  must_register_ = finish_->stop_job = true;
  return std::nullopt;
}

// Is it the answer of a ps task 0 that was restarted after the last save?
// Nobody else is left to tell it that the job is over, and it would wait for
// ever.
bool EndMachine::IsUnknownToNewPs(const absl::Status& status) const {
  return options_.chief && !must_register_ &&
         (signal_ == 0 || exit_.code == kExitDone) && IsFenced(status) &&
         !IsReplaced(status);
}

std::optional<Exit> EndMachine::OnRegisteredAgain(const absl::Status& status,
                                                  bool must_confirm) {
  if (status.ok()) {
    must_register_ = must_confirm;
    return std::nullopt;
  }
  if (auto yielded = Yield(status)) return yielded;
  return IsLastAttempt() ? std::optional<Exit>(exit_) : std::nullopt;
}

// A newer start of this task has taken over: what has become of the job is its
// to say. A failure or a signal of this one's own goes before.
std::optional<Exit> EndMachine::Yield(const absl::Status& why) const {
  if (!IsReplaced(why) || exit_.code != kExitDone) return std::nullopt;
  return ExitOfReplaced(std::string(why.message()));
}

bool EndMachine::IsLastAttempt() {
  ++attempts_;
  // No other start of the chief would come and tell.
  const bool must_tell = options_.chief && exit_.code == kExitDone;
  if (signal_ != 0 && !must_tell) return true;
  return attempts_ >= (options_.chief ? kChiefFinishAttempts : kFinishAttempts);
}

std::optional<Exit> EndMachine::ExitOfSeenEnd(const JobState& state) const {
  const bool is_seen =
      finish_until_ < absl::InfiniteFuture() && state.phase() == DONE;
  return is_seen ? std::optional<Exit>(exit_) : std::nullopt;
}

}  // namespace muster
