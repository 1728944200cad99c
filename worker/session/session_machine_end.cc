// The part of SessionMachine that ends: done, stopped by a signal, failed.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/cluster/task_id.h"
#include "common/rpc/protocol.h"
#include "worker/client/call_status.h"
#include "worker/session/session_machine.h"

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
// How long, and how often, a chief that has finished looks whether the job is
// DONE: longer than ps task 0 waits for who has never come, and by default for
// a worker that stands still. A ps task 0 that is replaced meanwhile is told.
constexpr absl::Duration kEndWait = absl::Seconds(35);
constexpr absl::Duration kEndPoll = absl::Milliseconds(250);
// How long a signalled chief waits for the others' last steps: with its own
// step before and the save after it, the end is to come within 10 s.
constexpr absl::Duration kDrainWait = absl::Seconds(5);

// The job has ended as its training wanted.
bool IsStopCondition(absl::string_view reason) {
  return reason == "steps" || reason == "epochs" || reason == "seconds" ||
         reason == "target_accuracy";
}

std::string TaskNames(const std::vector<TaskId>& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const TaskId& task) {
    absl::StrAppend(out, TaskName(task));
  });
}

}  // namespace

void SessionMachine::On(const FinalEvent& event) {
  busy_ = false;
  // A full disk is no lost peer: trying for ever would only hide it.
  const bool lost_peer =
      IsTransient(event.status) && !absl::IsResourceExhausted(event.status);
  if (lost_peer || IsFenced(event.status)) {
    if (state_.phase() == DONE) return EndWithoutSave(event.status.message());
    // A ps died while the end was being saved: recover, then try again.
    if (signal_ == 0 && too_few_.empty()) return Reconnect(event.status);
  }
  final_done_ = true;
  final_status_ = event.status;
}

void SessionMachine::On(const FinishEvent& event) {
  busy_ = false;
  if (!ending_) return OnStaying(event);
  if (event.reply.ok()) return OnFinished(event.reply->state());
  if (YieldAtEnd(event.reply.status())) return;
  if (IsUnknownToNewPs(event.reply.status())) {
    // As often as it is restarted.
    finish_attempts_ = 0;
    finish_until_ = absl::InfiniteFuture();
    must_register_ = finish_stops_job_ = true;
  } else if (IsLastFinishAttempt()) {
    return ExitWith(exit_code_, exit_text_);
  }
  RetryLater();
}

// Is it the answer of a ps task 0 that was restarted after the last save?
// Nobody else is left to tell it that the job is over, and it would wait for
// ever.
bool SessionMachine::IsUnknownToNewPs(const absl::Status& status) const {
  return options_.chief && !must_register_ &&
         (signal_ == 0 || exit_code_ == kExitDone) && IsFenced(status) &&
         !IsReplaced(status);
}

// A chief stays until the job is DONE: for a while ps task 0 may wait for a
// worker that is still to come, and would it die, nobody else could tell its
// next start that the job is over.
void SessionMachine::OnFinished(const JobState& state) {
  finish_until_ = std::min(finish_until_, now_ + kEndWait);
  const bool stays = options_.chief && exit_code_ == kExitDone &&
                     signal_ == 0 && state.phase() == STOPPING &&
                     now_ < finish_until_;
  if (!stays) return ExitWith(exit_code_, exit_text_);
  finish_attempts_ = failures_ = 0;
  retry_at_ = now_ + kEndPoll;
}

void SessionMachine::OnRegisteredToFinish(const absl::Status& status) {
  busy_ = false;
  if (status.ok()) {
    must_register_ = register_takeover_ != 0;
    return;
  }
  if (YieldAtEnd(status)) return;
  if (IsLastFinishAttempt()) return ExitWith(exit_code_, exit_text_);
  RetryLater();
}

// A newer start of this task has taken over: what has become of the job is its
// to say. A failure or a signal of this one's own goes before.
bool SessionMachine::YieldAtEnd(const absl::Status& why) {
  if (!IsReplaced(why) || exit_code_ != kExitDone) return false;
  ExitWith(kExitFailed, std::string(why.message()));
  return true;
}

bool SessionMachine::IsLastFinishAttempt() {
  ++finish_attempts_;
  // No other start of the chief would come and tell.
  const bool must_tell = options_.chief && exit_code_ == kExitDone;
  if (signal_ != 0 && !must_tell) return true;
  return finish_attempts_ >=
         (options_.chief ? kChiefFinishAttempts : kFinishAttempts);
}

void SessionMachine::On(const SignalEvent& event) {
  signal_ = event.signal;
  drain_until_ = now_ + kDrainWait;
}

void SessionMachine::On(const StopEvent& event) {
  if (!options_.chief || !stop_reason_.empty()) return;
  stop_reason_ = event.reason;
  stop_failure_ = event.failure;
}

void SessionMachine::AdvanceSignalled() {
  // The job's end came first.
  if (completed_ && final_done_ && final_status_.ok()) return FinishCompleted();
  exit_code_ = 128 + signal_;
  exit_text_ = absl::StrCat("stopped by signal ", signal_);
  // Others may train in an epoch that the chief has not entered itself.
  const bool has_epoch =
      last_epoch_ != 0 ||
      (peers_.AllGreeted() && EpochIsUsable(state_, peers_.replies()));
  if (options_.chief && has_epoch && !Drain()) return;
  if (options_.chief && has_epoch && !final_done_) {
    lacks_save_ = true;
    actions_.push_back(Say{"ending without a last save: a ps task was lost",
                           /*is_error=*/true});
  }
  if (!options_.chief && InEpoch() && report_.step != 0) {
    return ReportStep(/*stop_reason=*/"");
  }
  if (!final_status_.ok()) {
    // The signal's exit code does not tell.
    actions_.push_back(
        Say{std::string(final_status_.message()), /*is_error=*/true});
  }
  if (registered_with_ == 0 || !peers_.AllGreeted()) {
    return ExitWith(exit_code_, exit_text_);
  }
  Finish("interrupted", /*stop_job=*/options_.chief);
}

// First nobody gets another step, then all report the one that they are in,
// and only then is saved: no acknowledged step is missing there.
bool SessionMachine::Drain() {
  if (final_done_) return true;
  if (!InEpoch()) {
    // A ps is lost, or its answer was. It may be there again in time.
    if (now_ >= drain_until_) return true;
    if (!Connect() || Pause()) return false;
    if (!EpochIsUsable(state_, peers_.replies())) return true;
    if (!UseEpoch()) return false;
  }
  const bool stopping = stop_answered_ || state_.phase() == STOPPING;
  if (report_.step != 0 || !stopping) {
    ReportStep(stopping ? "" : "interrupted");
    return false;
  }
  std::vector<TaskId> unfinished;
  if (!OthersHaveFinished(state_, options_.self, &unfinished)) {
    if (now_ < drain_until_) {
      WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
      return false;
    }
    actions_.push_back(
        Say{absl::StrCat("not waiting for ", TaskNames(unfinished),
                         " any longer: a step that it has not reported may be "
                         "missing in the checkpoint"),
            /*is_error=*/true});
  }
  busy_ = true;
  completed_ = false;
  actions_.push_back(RunFinal{/*completed=*/false, "interrupted",
                              /*failed=*/!stop_failure_.ok()});
  return false;
}

// The end of all but the chief: it takes no more steps, and leaves when the
// chief has saved. Should a ps be lost before that, the job goes on from an
// older checkpoint, and wants its workers.
void SessionMachine::AdvanceReported() {
  if (JobHasTooFewReplicas()) {
    return Fail(kExitRetryable, state_.stop_reason());
  }
  StopWaiting(&waiting_);
  const bool chief_is_there = MaySave(state_, options_.chief_task);
  if (!chief_is_there && !state_.unsaved()) {
    StopWaiting(&end_waiting_);
    return Finish("done", /*stop_job=*/false);
  }
  if (!HasFinished(state_, options_.self)) return Stay();
  WaitFor(&end_waiting_,
          absl::StrCat(TaskName(options_.chief_task),
                       chief_is_there ? "" : ", which is lost, to come back,",
                       " to save the model and to finish"));
}

void SessionMachine::Stay() {
  const auto first_ps = state_.ps_incarnations().find(0);
  SendFinish finish{"done", /*stop_job=*/false};
  finish.stays = true;
  finish.model_epoch = state_.model_epoch();
  finish.ps_incarnation =
      first_ps == state_.ps_incarnations().end() ? 0 : first_ps->second;
  busy_ = true;
  actions_.push_back(std::move(finish));
}

void SessionMachine::OnStaying(const FinishEvent& event) {
  if (!event.reply.ok()) return ReconnectOrYield(event.reply.status());
  AdoptState(event.reply->state());
  if (!HasFinished(state_, options_.self)) return RetryLater();
  failures_ = 0;
}

// The chief's end: after all others.
void SessionMachine::AdvanceStopping() {
  if (JobHasTooFewReplicas()) {  // said an earlier start of this task
    too_few_ = state_.stop_reason();
    return AdvanceTooFew();
  }
  if (JobHasFailed()) return Fail(kExitFailed, DescribeFailedJob());
  if (final_done_) return FinishCompleted();
  std::vector<TaskId> unfinished;
  if (!OthersHaveFinished(state_, options_.self, &unfinished)) {
    WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
    GreetAgain();
    return;
  }
  busy_ = completed_ = true;
  actions_.push_back(RunFinal{/*completed=*/true, state_.stop_reason(),
                              /*failed=*/!stop_failure_.ok()});
}

// The others end. A chief gets here without its last save if ps task 0 did not
// hear of it for too long, or had a Finish that was not its own; the shards may
// still be there.
void SessionMachine::AdvanceDone() {
  if (final_done_) return FinishCompleted();
  if (JobHasTooFewReplicas()) {
    return ExitWith(kExitRetryable, state_.stop_reason());
  }
  if ((options_.chief || !came_in_time_) && JobHasFailed()) {
    return ExitWith(kExitFailed, DescribeFailedJob());
  }
  if (!options_.chief && state_.unsaved()) {
    return ExitWith(
        kExitRetryable,
        absl::StrCat("the job has ended without its last save, as ",
                     TaskName(options_.chief_task),
                     " did not come back: started again, it goes on from the "
                     "newest checkpoint"));
  }
  const bool is_done = !options_.chief || HasFinished(state_, options_.self);
  if (is_done && !came_in_time_ && !IsReached(options_.goal, state_)) {
    return EndTooLate();
  }
  if (is_done && (!options_.chief || IsSaved())) {
    if (!came_in_time_ && !said_finished_before_) {
      actions_.push_back(Say{DescribeEarlierEnd()});
    }
    return ExitWith(kExitDone, "");
  }
  if (!peers_.AllGreeted()) return EndWithoutSave(peers_.DescribeMissing());
  if (!ShardsHoldEpoch(state_, peers_.replies())) {
    return EndWithoutSave("a ps was restarted");
  }
  if (!UseEpoch()) return;
  busy_ = completed_ = true;
  actions_.push_back(RunFinal{/*completed=*/true, state_.stop_reason(),
                              /*failed=*/!stop_failure_.ok()});
}

// An earlier start of this chief has done so, or there is nothing to save: a
// new start of ps task 0 that was told of the end has no model.
bool SessionMachine::IsSaved() const {
  return !options_.saves || options_.saved_step == state_.global_step() ||
         (!came_in_time_ && state_.model_epoch() == 0);
}

std::string SessionMachine::DescribeEarlierEnd() const {
  return absl::StrCat("the job was over before this task came (",
                      state_.stop_reason(), ", at step ", state_.global_step(),
                      ")");
}

// A ps that keeps serving has another job; one that was stopped goes on with
// new ps tasks.
void SessionMachine::EndTooLate() {
  const bool is_another = IsStopCondition(state_.stop_reason());
  ExitWith(is_another ? kExitBadConfig : kExitRetryable,
           absl::StrCat(DescribeEarlierEnd(), ", and ", Describe(options_.goal),
                        " of this training is not reached; a ps serves one "
                        "job: start the ps tasks anew to train"));
}

void SessionMachine::EndWithoutSave(absl::string_view why) {
  ExitWith(kExitRetryable,
           absl::StrCat("the job is done, but its last save is missing, and "
                        "now it is too late (",
                        why,
                        "); started again, the job goes on from the newest "
                        "checkpoint"));
}

// A finished run that is started again has nothing to do, which looks like a
// failure to train unless it is said.
void SessionMachine::SayIfFinishedBefore() {
  // Who comes when it is DONE says so as it ends.
  const bool is_over =
      state_.phase() == STOPPING || (state_.phase() == DONE && came_in_time_);
  const std::string& reason = state_.stop_reason();
  if (!is_over || !IsStopCondition(reason) || step_ != 0 ||
      said_finished_before_)
    return;
  said_finished_before_ = true;
  actions_.push_back(
      Say{absl::StrCat("the training was finished already: step ",
                       state_.global_step(), ", by stop.", reason)});
}

// For an earlier start of this task, which has said more.
bool SessionMachine::JobHasFailed() const {
  return stop_failure_.ok() &&
         (absl::StartsWith(state_.stop_reason(), kFailed) ||
          state_.stop_reason() == kNonFinite);
}

std::string SessionMachine::DescribeFailedJob() const {
  return absl::StrCat("the job has ended before: ", state_.stop_reason());
}

void SessionMachine::FinishCompleted() {
  absl::Status failure = stop_failure_;
  failure.Update(final_status_);
  exit_code_ = kExitDone;
  if (!failure.ok()) {
    // There may be room again, and ps task 0 keeps the model for a while.
    exit_code_ =
        absl::IsResourceExhausted(failure) ? kExitRetryable : kExitFailed;
  }
  exit_text_ = std::string(failure.message());
  if (!final_status_.ok() && !options_.ps_addresses[0].empty()) {
    absl::StrAppend(&exit_text_,
                    "; the ps tasks keep the model for --worker_timeout, in "
                    "which another start of this task saves it");
  }
  Finish("done", /*stop_job=*/false);
}

void SessionMachine::Finish(absl::string_view reason, bool stop_job) {
  if (!ending_) failures_ = 0;
  ending_ = true;
  busy_ = true;
  finish_reason_ = std::string(reason);
  finish_stops_job_ = stop_job;
  actions_.push_back(
      SendFinish{finish_reason_, stop_job, lacks_save_ || !final_status_.ok()});
}

// Ends with `code`; tells the coordinator first if it knows us. A chief that
// cannot go on ends the job: nobody else could start it.
void SessionMachine::Fail(int code, std::string text) {
  if (registered_with_ == 0) return ExitWith(code, std::move(text));
  exit_code_ = code;
  exit_text_ = std::move(text);
  Finish(absl::StrCat(kFailed, exit_text_), /*stop_job=*/options_.chief);
}

void SessionMachine::ExitWith(int code, std::string text) {
  exited_ = true;
  actions_.push_back(Exit{code, std::move(text)});
}

}  // namespace muster
