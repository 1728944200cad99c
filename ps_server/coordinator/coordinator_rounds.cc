// The part of Coordinator in which steps depend on other workers: the rounds of
// synchronous replication and the clocks of bounded staleness.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "ps_server/coordinator/coordinator.h"

namespace muster {
namespace {

// As many tasks as a line of text can name.
constexpr int kMaxNamed = 16;
// Larger ones are counted as this.
constexpr int64_t kMaxCountedStaleness = 64;

void CountStaleness(int64_t staleness, std::vector<int64_t>& counts) {
  const auto i = static_cast<size_t>(std::min(staleness, kMaxCountedStaleness));
  if (counts.size() <= i) counts.resize(i + 1);
  ++counts[i];
}

void AddWaitingFor(const std::vector<TaskKey>& tasks, StepReply& reply) {
  for (const TaskKey& task : tasks) {
    if (reply.waiting_for_size() >= kMaxNamed) return;
    TaskId* const id = reply.add_waiting_for();
    id->set_job(task.first);
    id->set_index(task.second);
  }
}

}  // namespace

std::set<TaskKey> Coordinator::LiveTasks() const {
  std::set<TaskKey> live;
  for (const auto& [key, worker] : workers_) {
    if (worker.IsActive()) live.insert(live.end(), key);
  }
  return live;
}

void Coordinator::SayUpdateRows() {
  const StepRounds* const rounds = gate_->rounds();
  if (rounds == nullptr || phase_ != RUNNING) return;
  const std::set<TaskKey> live = LiveTasks();
  // Who waits then says what is missing.
  if (live.empty() || rounds->TooFew(live)) return;
  const int64_t gradients = std::min(rounds->replicas_to_aggregate(),
                                     static_cast<int64_t>(live.size()));
  Say(absl::StrCat("the training goes on: an update now has ",
                   gradients * budget_.batch_size(), " rows, of ", gradients,
                   gradients == 1 ? " worker" : " workers"));
}

std::set<TaskKey> Coordinator::RegisteredTasks() const {
  std::set<TaskKey> registered;
  for (const auto& [key, worker] : workers_) {
    if (worker.registered) registered.insert(registered.end(), key);
  }
  return registered;
}

void Coordinator::Count(const DecidedSteps& steps, absl::Time now) {
  for (const Delivery& step : steps.chosen) {
    CoordinatorWorker& worker = workers_[KeyOf(step.sender)];
    worker.CountStep(step, now);
    CountStaleness(step.staleness, staleness_counts_);
  }
  for (const Delivery& step : steps.dropped) {
    workers_[KeyOf(step.sender)].DropStep(step, now);
  }
}

void Coordinator::CheckRounds(absl::Time now) {
  Count(gate_->TryClose(now), now);
}

StepPause Coordinator::PauseOfSteps() const {
  if (saves_.pauses_grants()) return StepPause::kAll;
  return needs_chief_ ? StepPause::kNewSteps : StepPause::kNone;
}

bool Coordinator::TryGrantTo(const TaskKey& task, absl::Time now) {
  CheckPause(now);
  return gate_->TryEnter(task, PauseOfSteps());
}

StepReply Coordinator::MakeStepReply(const CoordinatorWorker& worker,
                                     bool granted) const {
  StepReply reply;
  reply.set_granted(granted);
  reply.set_global_step(budget_.steps());
  reply.set_phase(phase_);
  reply.set_model_epoch(committed_epoch_);
  reply.set_state_version(state_version_);
  if (granted && gate_->rounds() != nullptr) {
    *reply.mutable_token() = gate_->rounds()->token();
    reply.mutable_token()->set_chosen_step(worker.chosen_step);
  }
  return reply;
}

void Coordinator::ExplainWait(const TaskKey& task, StepReply& reply) const {
  if (phase_ != RUNNING) return;
  if (saves_.pauses_grants()) {
    reply.set_waiting_why("a ps task that stops to be saved and to leave");
  } else if (needs_chief_) {
    AddWaitingFor({KeyOf(chief_)}, reply);
    reply.set_waiting_why(absl::StrCat(
        "to come back and save the model: ",
        unsaved_.Describe(budget_.steps() + budget_.outstanding())));
  } else {
    StepWait wait = gate_->Explain(task, KeyOf(chief_));
    AddWaitingFor(wait.waiting_for, reply);
    reply.set_waiting_why(std::move(wait.why));
    reply.set_too_few_replicas(wait.too_few_replicas);
  }
}

void Coordinator::AnswerOlderStep(const TaskKey& task) {
  const auto older = std::find_if(
      waiting_steps_.begin(), waiting_steps_.end(),
      [&task](const WaitingStep& step) { return step.task == task; });
  if (older == waiting_steps_.end()) return;
  StepReply reply = MakeStepReply(workers_[task], /*granted=*/false);
  ExplainWait(task, reply);
  step_answers_.push_back({older->step_id, std::move(reply)});
  waiting_steps_.erase(older);
}

std::vector<StepAnswer> Coordinator::TakeStepAnswers(absl::Time now) {
  if (!waiting_steps_.empty()) gate_->SeeLive(now);
  for (WaitingStep& step : std::exchange(waiting_steps_, {})) {
    CoordinatorWorker& worker = workers_[step.task];
    const bool granted =
        phase_ == RUNNING && worker.IsActive() && TryGrantTo(step.task, now);
    if (!granted && gate_->MayWait() && step.state_version == state_version_ &&
        now < step.until) {
      waiting_steps_.push_back(std::move(step));
      continue;
    }
    worker.waits_for_grant = !granted;
    StepReply reply = MakeStepReply(worker, granted);
    if (!granted) ExplainWait(step.task, reply);
    step_answers_.push_back({step.step_id, std::move(reply)});
  }
  return std::exchange(step_answers_, {});
}

void Coordinator::CutSteps() {
  for (WaitingStep& step : waiting_steps_) step.until = absl::InfinitePast();
}

absl::StatusOr<PauseRoundsReply> Coordinator::PauseRounds(
    const PauseRoundsRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("hold rounds", request.sender(), now));
  if (committed_epoch_ == 0 || request.model_epoch() != committed_epoch_) {
    return absl::AbortedError(absl::StrCat(
        "hold rounds of model epoch ", request.model_epoch(),
        ": the committed one is ", committed_epoch_, "; watch and pull anew"));
  }
  StepRounds* const rounds = gate_->rounds();
  if (rounds == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("hold rounds from ", TaskName(request.sender()),
                     ": the job's replication has no rounds; a snapshot needs "
                     "no token"));
  }
  if (request.pause()) {
    rounds->Hold(now);
  } else {
    rounds->Release();
    CheckRounds(now);
    CheckEnd(now);
    CheckSave(now);
  }
  PauseRoundsReply reply;
  *reply.mutable_token() = rounds->token();
  *reply.mutable_state() = State();
  return reply;
}

}  // namespace muster
