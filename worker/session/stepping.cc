#include "worker/session/stepping.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/stopped_error.h"
#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "worker/client/call_status.h"
#include "worker/session/chief_machine.h"
#include "worker/session/end_machine.h"

namespace muster {
namespace {

// How often an idle chief says Hello.
constexpr absl::Duration kGreetAgain = absl::Seconds(1);
// A question for a step that is not answered for so long, or so long after the
// time that it may wait at ps task 0, is talked of: the network may have
// swallowed it. Within 3 s of a cut, also where it may wait for 1 s.
constexpr absl::Duration kSilence = absl::Seconds(2);
constexpr absl::Duration kLateness = absl::Milliseconds(1500);

// The task's entry in the state; nullptr if it has none.
const WorkerState* FindWorker(const JobState& state, const TaskId& task) {
  for (const WorkerState& worker : state.workers()) {
    if (worker.sender().task() == task) return &worker;
  }
  return nullptr;
}

// "/job:worker/task:2 to push its gradient of step 120".
std::string DescribeWait(const StepReply& reply) {
  const std::string tasks =
      TaskNames({reply.waiting_for().begin(), reply.waiting_for().end()});
  return absl::StrCat(tasks,
                      tasks.empty() || reply.waiting_why().empty() ? "" : " ",
                      reply.waiting_why());
}

}  // namespace

std::string DescribeLostSteps(const TaskId& task, int64_t steps) {
  return absl::StrCat(TaskName(task), " lost ", steps, " acknowledged ",
                      steps == 1 ? "step" : "steps", " with a ps");
}

absl::Time Stepping::next_wakeup() const {
  return SoonestAfter(core_.now(), {steps_.ask_again_at(), greet_at_,
                                    answer_due_, answer_waiting_.next_due()});
}

// ---- Events -------------------------------------------------------------

void Stepping::On(const StepEvent& event) {
  core_.OnAnswered();
  answer_due_ = absl::InfiniteFuture();
  if (!event.reply.ok()) {
    answer_waiting_.Stop();
    return core_.ReconnectOrYield(event.reply.status());
  }
  core_.StopWaiting(&answer_waiting_);
  core_.OnProgress();
  if (const absl::Status status = CheckGrant(*event.reply); !status.ok()) {
    return core_.Fail({kExitFailed, std::string(status.message())});
  }
  const StepMachine::Answer answer = steps_.OnAnswer(*event.reply, core_.now());
  if (answer == StepMachine::Answer::kReturned) return;
  const std::string others = DescribeWait(*event.reply);
  if (answer == StepMachine::Answer::kTooFewReplicas) {
    core_.end().OnTooFew(absl::StrCat(kTooFewReplicas, ": ", others));
  } else if (answer == StepMachine::Answer::kGranted || others.empty()) {
    core_.StopWaiting(&step_waiting_);
  } else {
    core_.WaitSince(steps_.asked_at(), &step_waiting_, others);
  }
}

void Stepping::On(const TrainEvent& event) {
  core_.OnAnswered();
  if (event.report.ok()) {
    core_.StopWaiting(&failing_);
    core_.OnProgress();
    return steps_.OnTaken(*event.report);
  }
  const absl::Status& status = event.report.status();
  if (IsStopped(status)) return steps_.OnGivenUp();
  if (!IsTransient(status) && !IsFenced(status)) {
    const ExitCode code = IsTaken(status) ? kExitBadCheckpoint : kExitFailed;
    return core_.Fail(
        {UnlessDamaged(status, code), std::string(status.message())});
  }
  if (event.may_resume) {
    steps_.OnUnfinished(std::string(status.message()));
  } else {
    steps_.OnGivenUp();
  }
  core_.WaitFor(&failing_,
                absl::StrCat("a step to succeed (", status.message(), ")"));
  if (!core_.exited()) core_.Reconnect(status);
}

void Stepping::OnReconnect() {
  steps_.Leave();
  step_waiting_.Stop();
}

// ---- The epoch ----------------------------------------------------------

bool Stepping::InEpoch() const {
  return steps_.epoch() != 0 && steps_.epoch() == core_.state().model_epoch() &&
         core_.HasUsableEpoch();
}

bool Stepping::UseEpoch() {
  core_.StopWaiting();
  if (!ShardsHoldOwnModel()) return false;
  const JobState& state = core_.state();
  if (steps_.epoch() == state.model_epoch()) return true;
  std::vector<uint64_t> incarnations = IncarnationsOf(core_.peers().replies());
  const bool is_new = !steps_.IsLastEpoch(state.model_epoch(), incarnations);
  if (is_new) {
    const TaskId& task = core_.options().self;
    const WorkerState* const self = FindWorker(state, task);
    const int64_t lost =
        steps_.Restore(self != nullptr ? self->steps() : 0, incarnations[0]);
    if (lost > 0) core_.SayLine(DescribeLostSteps(task, lost));
    core_.end().ForgetSave();
  }
  steps_.Enter(state.model_epoch(), incarnations);
  core_.Do(EnterEpoch{state.model_epoch(), std::move(incarnations), is_new});
  return true;
}

bool Stepping::ShardsHoldOwnModel() {
  const uint64_t fingerprint = core_.state().fingerprint();
  const uint64_t own = core_.options().model_fingerprint;
  if (fingerprint == own) {
    doubts_state_ = false;
    return true;
  }
  // An answer that was damaged on its way may still be one. Who has been in the
  // model registers anew, whatever version that state has.
  if (steps_.last_epoch() > 0 && !std::exchange(doubts_state_, true)) {
    core_.ForgetRegistration();
    core_.Reconnect(absl::UnavailableError("it told of another model"));
    return false;
  }
  core_.ExitWith(
      {kExitBadConfig,
       absl::StrFormat(
           "the ps tasks hold another model (fingerprint %016x, this "
           "training has %016x): use the same --training and --set on "
           "every worker, or restart the ps tasks",
           fingerprint, own)});
  return false;
}

// ---- Steps --------------------------------------------------------------

void Stepping::Advance() {
  const bool is_done = core_.end().is_done();
  const std::string stop_reason =
      core_.end().StopReason(core_.state(), core_.now());
  const bool stops = !stop_reason.empty() && !steps_.knows_stop();
  if (steps_.granted() && !stops && !is_done) {
    greet_at_ = absl::InfiniteFuture();
    core_.end().OnStepBegun();
    return core_.DoAlone(steps_.Take());
  }
  const bool idle = !steps_.has_report();
  if (idle && steps_.IsRefused(core_.state().state_version(), core_.now())) {
    GreetAgain();
    return;
  }
  // A chief whose questions wait is as idle as one that does not ask.
  const bool waits = core_.options().step_wait > absl::ZeroDuration();
  if (idle && waits && !stops && GreetAgain()) return;
  ReportStep(stops ? stop_reason : "");
}

// A chief without a step of its own would not notice that a ps was restarted,
// while those who hold the steps wait for it to restore.
bool Stepping::GreetAgain() {
  if (!core_.options().chief) return false;
  if (greet_at_ == absl::InfiniteFuture()) {
    greet_at_ = core_.now() + kGreetAgain;
  }
  if (core_.now() < greet_at_) return false;
  greet_at_ = absl::InfiniteFuture();
  core_.peers().ResetAll();
  core_.GreetDuePeers();
  return true;
}

void Stepping::ReportStep(absl::string_view stop_reason) {
  // The shards that have it do not take it a second time.
  if (steps_.is_unfinished()) return core_.DoAlone(ResumeStep{});
  const bool may_wait = !core_.end().is_signalled() && !core_.end().is_done() &&
                        core_.state().phase() == RUNNING;
  SendStep question = steps_.Ask(core_.state().state_version(), stop_reason,
                                 may_wait, core_.now());
  question.is_done = core_.end().is_done();
  answer_due_ = core_.now() + std::max(kSilence, question.max_wait + kLateness);
  core_.DoAlone(std::move(question));
}

void Stepping::AwaitAnswer() {
  if (core_.now() < answer_due_) return;
  core_.WaitSince(
      steps_.asked_at(), &answer_waiting_,
      absl::StrCat(core_.first_ps(), " to answer the question for a step"));
}

// ---- The end ------------------------------------------------------------

bool Stepping::NobodyWantsReport() const {
  return !core_.HasUsableEpoch() &&
         HasFinished(core_.state(), core_.options().chief_task);
}

std::string Stepping::DescribeUncounted() const {
  const bool is_lost = core_.peers().AllGreeted() && !core_.HasUsableEpoch();
  return is_lost ? "" : steps_.DescribeUncounted();
}

}  // namespace muster
