// The part of SessionMachine that takes steps: asks for them, reports them, and
// says which other workers they wait for.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/task_id.h"
#include "worker/client/call_status.h"
#include "worker/session/session_machine.h"

namespace muster {
namespace {

// How often a refused worker asks for a step without news, and an idle chief
// says Hello.
constexpr absl::Duration kAskAgain = absl::Seconds(1);

// Begins the reason that a job ends for, by which the others know it.
constexpr absl::string_view kTooFewReplicas = "too few replicas to go on";

// "/job:worker/task:2 to push its gradient of step 120".
std::string DescribeWait(const StepReply& reply) {
  const std::string tasks = absl::StrJoin(
      reply.waiting_for(), ", ", [](std::string* out, const TaskId& task) {
        absl::StrAppend(out, TaskName(task));
      });
  return absl::StrCat(tasks,
                      tasks.empty() || reply.waiting_why().empty() ? "" : " ",
                      reply.waiting_why());
}

}  // namespace

void SessionMachine::On(const StepEvent& event) {
  busy_ = false;
  if (!event.reply.ok()) return ReconnectOrYield(event.reply.status());
  const StepReply& reply = *event.reply;
  failures_ = 0;
  stop_answered_ = reply.phase() == STOPPING;
  const bool gave_up = report_.abandoned;
  CountAcknowledged(reply);
  report_ = {};
  granted_ = reply.granted() && reply.model_epoch() == entered_epoch_;
  if (reply.too_few_replicas()) {
    granted_ = false;
    too_few_ = absl::StrCat(kTooFewReplicas, ": ", DescribeWait(reply));
    return;
  }
  if (granted_) {
    token_ = reply.token();
    StopWaiting(&step_waiting_);
  }
  // The answer to a step that was given up grants nothing.
  if (granted_ || gave_up) return;
  OnRefused(reply);
}

// In synchronous replication only the next step's token says whether a step is
// in the model.
void SessionMachine::CountAcknowledged(const StepReply& reply) {
  if (reply.model_epoch() != last_epoch_) return;
  if (!report_.abandoned && !report_.late && report_.step != 0) {
    undecided_step_ = report_.step;
  }
  const bool has_rounds = token_.round() != 0;
  if (undecided_step_ == 0 || (has_rounds && !reply.granted())) return;
  if (!has_rounds || reply.token().chosen_step() >= undecided_step_) {
    ++acknowledged_;
  }
  undecided_step_ = 0;
}

void SessionMachine::OnRefused(const StepReply& reply) {
  refused_at_version_ = reply.state_version();
  // An answer that has waited is followed by the next question at once: while
  // nobody asks, a round that closes grants this worker nothing. One that has
  // not is, if there is news; else asking would go round and round.
  const bool waited = options_.step_wait > absl::ZeroDuration() &&
                      (now_ - asked_at_ >= options_.step_wait / 2 ||
                       reply.state_version() > asked_version_);
  asked_version_ = std::max(asked_version_, reply.state_version());
  ask_again_at_ = waited ? now_ : now_ + kAskAgain;
  const std::string what = DescribeWait(reply);
  if (what.empty()) return StopWaiting(&step_waiting_);
  if (step_waiting_.since() == absl::InfiniteFuture()) {
    step_waiting_.WaitFor(what, asked_at_);
  }
  WaitFor(&step_waiting_, what);
}

void SessionMachine::On(const TrainEvent& event) {
  busy_ = false;
  granted_ = false;
  if (event.report.ok()) {
    failures_ = 0;
    report_ = *event.report;
    report_.step = step_;
    return;
  }
  const absl::Status& status = event.report.status();
  if (!IsTransient(status) && !IsFenced(status)) {
    return Fail(kExitFailed, std::string(status.message()));
  }
  report_ = {};
  report_.step = step_;
  report_.abandoned = true;
  Reconnect(status);
}

void SessionMachine::ReportStep(absl::string_view stop_reason) {
  busy_ = true;
  asked_at_ = now_;
  asked_version_ = std::max(asked_version_, state_.state_version());
  const bool may_wait = stop_reason.empty() && signal_ == 0 &&
                        state_.phase() == RUNNING && !report_.abandoned;
  actions_.push_back(SendStep{
      entered_epoch_, last_incarnations_[0], report_, std::string(stop_reason),
      may_wait ? options_.step_wait : absl::ZeroDuration()});
}

void SessionMachine::AdvanceRunning() {
  const bool stops = !stop_reason_.empty() && !stop_answered_;
  if (granted_ && !stops) {
    greet_at_ = absl::InfiniteFuture();
    busy_ = true;
    actions_.push_back(TrainStep{++step_, token_});
    return;
  }
  const bool refused =
      refused_at_version_ >= state_.state_version() && now_ < ask_again_at_;
  const bool idle = report_.step == 0;
  if (idle && refused) {
    GreetAgain();
    return;
  }
  // A chief whose questions wait is as idle as one that does not ask.
  const bool waits = options_.step_wait > absl::ZeroDuration();
  if (idle && waits && !stops && GreetAgain()) return;
  ReportStep(stops ? stop_reason_ : "");
}

// A chief without a step of its own would not notice that a ps was restarted,
// while those who hold the steps wait for it to restore. True if it greets now.
bool SessionMachine::GreetAgain() {
  if (!options_.chief) return false;
  if (greet_at_ == absl::InfiniteFuture()) greet_at_ = now_ + kAskAgain;
  if (now_ < greet_at_) return false;
  greet_at_ = absl::InfiniteFuture();
  peers_.ResetAll();
  GreetDuePeers();
  return true;
}

bool SessionMachine::JobHasTooFewReplicas() const {
  return absl::StrContains(state_.stop_reason(), kTooFewReplicas);
}

// No update is made any more, so that what the chief saves is what all had.
void SessionMachine::AdvanceTooFew() {
  if (busy_ || Pause()) return;
  if (options_.chief && !final_done_) {
    busy_ = true;
    actions_.push_back(RunFinal{/*completed=*/false, "too_few_replicas"});
    return;
  }
  if (!final_status_.ok()) {
    actions_.push_back(
        Say{std::string(final_status_.message()), /*is_error=*/true});
  }
  Fail(kExitRetryable, too_few_);
}

}  // namespace muster
