#include "worker/session/ending.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/stopped_error.h"
#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "worker/client/call_status.h"
#include "worker/session/chief_machine.h"
#include "worker/session/end_machine.h"

namespace muster {
namespace {

// How often a chief that has finished looks whether the job is DONE.
constexpr absl::Duration kEndPoll = absl::Milliseconds(250);

}  // namespace

// ---- Events -------------------------------------------------------------

void Ending::On(const FinalEvent& event) {
  core_.OnAnswered();
  // A full disk is no lost peer: trying for ever would only hide it.
  const bool lost_peer = IsTransient(event.status) &&
                         !absl::IsResourceExhausted(event.status) &&
                         !IsStopped(event.status);
  if (lost_peer || IsFenced(event.status)) {
    if (core_.state().phase() == DONE) {
      return core_.ExitWith(
          EndMachine::ExitWithoutSave(event.status.message()));
    }
    // A ps died while the end was being saved: recover, then try again.
    if (!core_.end().is_signalled() && core_.end().too_few().empty()) {
      return core_.Reconnect(event.status);
    }
  }
  core_.end().OnSaved(event.status);
}

void Ending::On(const FinishEvent& event) {
  core_.OnAnswered();
  if (!core_.end().is_leaving()) return OnStaying(event);
  if (auto exit = core_.end().OnFinished(event.reply, core_.now())) {
    return core_.ExitWith(*std::move(exit));
  }
  if (!event.reply.ok()) {
    waiting_.Stop();
    return core_.RetryLater();
  }
  core_.PauseFor(kEndPoll);
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(event.reply->state(), core_.options().self);
  std::string line = waiting_.WaitFor(
      unfinished.empty() ? absl::StrCat(core_.first_ps(), " to end the job")
                         : absl::StrCat(TaskNames(unfinished), " to finish"),
      core_.now());
  if (!line.empty()) core_.SayLine(std::move(line));
}

void Ending::OnStaying(const FinishEvent& event) {
  if (!event.reply.ok()) return core_.ReconnectOrYield(event.reply.status());
  core_.AdoptState(event.reply->state());
  if (!HasFinished(core_.state(), core_.options().self)) {
    return core_.RetryLater();
  }
  core_.ForgetFailures();
}

void Ending::On(const SignalEvent& event) {
  core_.end().OnSignal(event.signal, core_.now());
}

void Ending::On(const StopEvent& event) { core_.end().OnStop(event); }

void Ending::On(const LeaveEvent&) {
  core_.end().OnLeave(core_.now());
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(core_.state(), core_.options().self);
  if (!core_.options().chief || unfinished.empty()) return;
  core_.SayLine(absl::StrCat("this task is done; it stays until ",
                             TaskNames(unfinished),
                             " are, too, to save the model"));
}

void Ending::HearOperator() {
  const JobState& state = core_.state();
  if (state.phase() != RUNNING) return;
  if (state.is_stopped()) {
    core_.end().OnStop({std::string(state.discards_end() ? kDiscardedByOperator
                                                         : kStoppedByOperator),
                        absl::OkStatus()});
  }
  if (!core_.end().is_done() && IsDrained(state, core_.options().self)) {
    core_.SayLine("an operator drains this task: it ends after its step");
    On(LeaveEvent());
  }
}

// ---- Whatever the peers are ---------------------------------------------

bool Ending::AdvanceAnyhow() {
  if (core_.end().is_leaving()) {
    AdvanceLeaving();
  } else if (core_.end().is_signalled() && !core_.busy()) {
    AdvanceSignalled();
  } else if (!core_.end().too_few().empty()) {
    AdvanceTooFew();
  } else if (core_.state().phase() == DONE && !core_.busy()) {
    AdvanceDone();
  } else {
    return false;
  }
  return true;
}

void Ending::AdvanceLeaving() {
  EndMachine& end = core_.end();
  if (auto exit = end.ExitOfSeenEnd(core_.state())) {
    return core_.ExitWith(*std::move(exit));
  }
  if (core_.busy() || core_.Pause()) return;
  if (end.must_register()) return connecting_.RegisterToFinish();
  core_.DoAlone(end.RepeatFinish());
}

void Ending::AdvanceSignalled() {
  EndMachine& end = core_.end();
  // The job's end came first.
  if (end.IsCompleted()) return Leave(end.FinishCompleted());
  const bool is_chief = core_.options().chief;
  const bool all_greeted = core_.peers().AllGreeted();
  // Others may train in an epoch that the chief has not entered itself.
  const bool has_epoch = stepping_.steps().last_epoch() != 0 ||
                         (all_greeted && core_.HasUsableEpoch());
  if (is_chief && has_epoch && !Drain()) return;
  if (is_chief && has_epoch && !end.save_is_over()) core_.Do(end.GiveUpSave());
  if (!is_chief && !ReportLast()) return;
  // The signal's exit code does not tell.
  SayFailedSave();
  if (core_.registered_with() == 0 || !core_.peers().AllGreeted()) {
    return core_.ExitWith(end.ExitOfSignal());
  }
  Leave(end.FinishSignalled());
}

// First nobody gets another step, then all report the one that they are in,
// and only then is saved: no acknowledged step is missing there.
bool Ending::Drain() {
  if (core_.end().save_is_over()) return true;
  const std::optional<bool> in_epoch = ReachEpoch();
  if (!in_epoch.value_or(false)) return in_epoch.has_value();
  const bool stopping =
      stepping_.steps().knows_stop() || core_.state().phase() == STOPPING;
  if (stepping_.steps().has_report() || !stopping) {
    stepping_.ReportStep(stopping ? "" : "interrupted");
    return false;
  }
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(core_.state(), core_.options().self);
  if (!unfinished.empty()) {
    if (core_.now() < core_.end().drain_until()) {
      core_.WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
      return false;
    }
    core_.SayLine(
        absl::StrCat("not waiting for ", TaskNames(unfinished),
                     " any longer: a step that it has not reported may be "
                     "missing in the checkpoint"),
        /*is_error=*/true);
  }
  Save(/*completed=*/false, "interrupted");
  return false;
}

bool Ending::ReportLast() {
  const StepMachine& steps = stepping_.steps();
  if (!steps.has_report() || core_.state().phase() == DONE) return true;
  const std::optional<bool> in_epoch = ReachEpoch();
  if (!in_epoch.value_or(false)) return in_epoch.has_value();
  // Another epoch wants no report.
  if (!steps.has_report()) return true;
  stepping_.ReportStep(/*stop_reason=*/"");
  return false;
}

std::optional<bool> Ending::ReachEpoch() {
  if (stepping_.InEpoch()) return true;
  // A ps is lost, or its answer was. It may be there again in time.
  if (core_.now() >= core_.end().drain_until()) return false;
  if (!connecting_.Advance() || core_.Pause()) return std::nullopt;
  if (!core_.HasUsableEpoch()) return false;
  if (!stepping_.UseEpoch()) return std::nullopt;
  return true;
}

// No update is made any more, so that what the chief saves is what all had.
void Ending::AdvanceTooFew() {
  if (core_.busy() || core_.Pause()) return;
  if (core_.options().chief && !core_.end().save_is_over()) {
    return core_.DoAlone(RunFinal{/*completed=*/false, "too_few_replicas"});
  }
  SayFailedSave();
  core_.Fail({kExitRetryable, core_.end().too_few()});
}

void Ending::AdvanceDone() {
  EndMachine& end = core_.end();
  const JobState& state = core_.state();
  if (end.save_is_over()) return Leave(end.FinishCompleted());
  if (auto exit = end.ExitOfDoneJob(state)) {
    std::string lateness = end.DescribeLateness(state);
    if (exit->code == kExitDone && !lateness.empty()) {
      core_.SayLine(std::move(lateness));
    }
    return core_.ExitWith(*std::move(exit));
  }
  const PeerTable& peers = core_.peers();
  if (!peers.AllGreeted()) {
    return core_.ExitWith(EndMachine::ExitWithoutSave(peers.DescribeMissing()));
  }
  if (!ShardsHoldEpoch(state, peers.replies())) {
    return core_.ExitWith(EndMachine::ExitWithoutSave("a ps was restarted"));
  }
  if (stepping_.UseEpoch()) Save(/*completed=*/true, state.stop_reason());
}

// ---- With all peers there -----------------------------------------------

// The end of a job for all but its chief: it takes no more steps, and leaves
// when the chief has saved. Should a ps be lost before that, the job goes on
// from an older checkpoint, and wants its workers.
bool Ending::AdvanceReported() {
  const JobState& state = core_.state();
  if (state.phase() != STOPPING && !core_.options().chief &&
      core_.end().is_done() && !stepping_.steps().has_report()) {
    core_.StopWaiting();
    Leave(core_.end().FinishDone());
    return true;
  }
  if (state.phase() != STOPPING || core_.options().chief ||
      (stepping_.steps().has_report() && !stepping_.NobodyWantsReport())) {
    core_.StopWaiting(&waiting_);
    return false;
  }
  if (HasTooFewReplicas(state)) {
    core_.Fail({kExitRetryable, state.stop_reason()});
  } else {
    core_.StopWaiting();
    WaitForChief();
  }
  return true;
}

void Ending::WaitForChief() {
  const JobState& state = core_.state();
  const TaskId& chief = core_.options().chief_task;
  const bool chief_is_there = MaySave(state, chief);
  if (!chief_is_there && !state.unsaved()) {
    core_.StopWaiting(&waiting_);
    return Leave(core_.end().FinishDone());
  }
  if (!HasFinished(state, core_.options().self)) {
    return core_.DoAlone(EndMachine::Stay(state));
  }
  core_.WaitFor(
      &waiting_,
      absl::StrCat(TaskName(chief),
                   chief_is_there ? "" : ", which is lost, to come back,",
                   " to save the model and to finish"));
}

// The chief's end: after all others.
bool Ending::AdvanceStopping() {
  EndMachine& end = core_.end();
  const JobState& state = core_.state();
  if (state.phase() != STOPPING || stepping_.steps().has_report()) return false;
  // The epoch that was just entered wants no report of the one before.
  if (!core_.options().chief) return AdvanceReported();
  if (HasTooFewReplicas(state)) {  // said an earlier start of this task
    end.OnTooFew(state.stop_reason());
    AdvanceTooFew();
  } else if (auto exit = end.ExitOfFailedJob(state)) {
    core_.Fail(*std::move(exit));
  } else if (end.save_is_over()) {
    Leave(end.FinishCompleted());
  } else {
    WaitForOthers();
  }
  return true;
}

void Ending::WaitForOthers() {
  const JobState& state = core_.state();
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(state, core_.options().self);
  if (!unfinished.empty()) {
    core_.WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
  } else if (stepping_.steps().IsAheadOf(state.state_version())) {
    core_.WaitFor("the account of all steps");
  } else {
    return Save(/*completed=*/true, state.stop_reason());
  }
  stepping_.GreetAgain();
}

// ---- Small moves --------------------------------------------------------

void Ending::SayFailedSave() {
  if (const auto failed = core_.end().SayFailedSave()) core_.Do(*failed);
}

void Ending::Save(bool completed, absl::string_view stop_reason) {
  core_.DoAlone(core_.end().Save(completed, stop_reason));
}

void Ending::Leave(SendFinish finish) {
  core_.ForgetFailures();
  core_.DoAlone(std::move(finish));
}

}  // namespace muster
