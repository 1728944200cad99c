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

void AddWaitingFor(const std::vector<TaskKey>& tasks, StepReply& reply) {
  for (const TaskKey& task : tasks) {
    if (reply.waiting_for_size() >= kMaxNamed) return;
    TaskId* const id = reply.add_waiting_for();
    id->set_job(task.first);
    id->set_index(task.second);
  }
}

absl::Status RefuseStep(const StepRequest& request, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("step ", request.step(), " from ",
                   TaskName(request.sender()), ": ", why));
}

}  // namespace

absl::Status Coordinator::StartReplication(const CommitEpochRequest& request,
                                           absl::Time now) {
  const ReplicationSpec& spec = request.replication();
  const std::string what = absl::StrCat("commit epoch ", request.model_epoch());
  int64_t replicas = 1;
  if (spec.has_sync()) {
    RETURN_IF_ERROR(Annotate(StepRounds::Check(spec.sync()), what));
    replicas = spec.sync().replicas_to_aggregate();
  } else if (spec.has_bounded_staleness()) {
    RETURN_IF_ERROR(
        Annotate(WorkerClocks::Check(spec.bounded_staleness().bound()), what));
  }
  RETURN_IF_ERROR(budget_.Start(request, replicas));
  rounds_.reset();
  clocks_.reset();
  if (spec.has_sync()) {
    rounds_.emplace(spec.sync(), request.global_step(), RegisteredTasks(),
                    now + options_.worker_timeout);
  }
  if (spec.has_bounded_staleness()) {
    clocks_.emplace(spec.bounded_staleness().bound());
  }
  return absl::OkStatus();
}

std::set<TaskKey> Coordinator::LiveTasks() const {
  std::set<TaskKey> live;
  for (const auto& [key, worker] : workers_) {
    if (worker.IsActive()) live.insert(live.end(), key);
  }
  return live;
}

void Coordinator::SayUpdateRows() {
  if (!rounds_.has_value() || phase_ != RUNNING) return;
  const std::set<TaskKey> live = LiveTasks();
  // What is missing then is said by who waits for it.
  if (live.empty() || rounds_->TooFew(live)) return;
  const int64_t gradients = std::min(rounds_->replicas_to_aggregate(),
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

void Coordinator::SeeLiveTasks(absl::Time now) {
  if (rounds_.has_value()) rounds_->SeeLive(LiveTasks(), now);
  if (clocks_.has_value()) clocks_->SetLive(LiveTasks());
}

absl::Status Coordinator::CheckRound(const StepRequest& request) const {
  if (!rounds_.has_value()) {
    if (request.round() == 0 && !request.late()) return absl::OkStatus();
    return RefuseStep(request,
                      absl::StrCat("it is of round ", request.round(),
                                   "; the job's replication has no rounds"));
  }
  if (request.abandoned() ||
      (request.round() >= 1 && request.round() <= rounds_->round())) {
    return absl::OkStatus();
  }
  return RefuseStep(
      request,
      absl::StrCat("it is of round ", request.round(),
                   "; wanted one that was given out, 1 to ", rounds_->round()));
}

bool Coordinator::TryDeliver(const StepRequest& request) {
  if (request.round() != rounds_->round() || phase_ == DONE) return false;
  if (request.late()) {
    rounds_->Leave(KeyOf(request.sender()));
    return false;
  }
  // Closed behind a worker that was lost, and is back with its step.
  if (!rounds_->is_open()) {
    if (!budget_.TryGrant()) return false;
    rounds_->Open();
  }
  return rounds_->Deliver(Delivery::Of(request));
}

void Coordinator::CountDelivery(CoordinatorWorker& worker,
                                const StepRequest& request, absl::Time now) {
  if (!TryDeliver(request)) CountDropped(worker, Delivery::Of(request), now);
}

void Coordinator::CountDropped(CoordinatorWorker& worker, const Delivery& step,
                               absl::Time now) {
  ++worker.dropped_steps;
  worker.PassStep(step.position, step.loss, /*counts=*/false, now);
}

void Coordinator::CheckRounds(absl::Time now) {
  if (!rounds_.has_value() || (!rounds_->is_open() && !rounds_->is_held())) {
    return;
  }
  const auto closed = rounds_->TryClose(LiveTasks(), now);
  if (!closed.has_value()) {
    if (!rounds_->IsIdle()) return;
    rounds_->Retract();
    budget_.Return();
    return;
  }
  int64_t examples = 0;
  for (const Delivery& step : closed->chosen) examples += step.examples;
  budget_.Report(examples);
  for (const Delivery& step : closed->chosen) {
    CoordinatorWorker& worker = workers_[KeyOf(step.sender)];
    worker.chosen_step = step.step;
    CountStep(worker, step, now);
  }
  for (const Delivery& step : closed->dropped) {
    CountDropped(workers_[KeyOf(step.sender)], step, now);
  }
}

bool Coordinator::TryJoinRound(const TaskKey& task) {
  if (rounds_->HasJoined(task)) return true;
  if (saves_.pauses_grants() || rounds_->HasDelivered(task)) return false;
  if (!rounds_->is_open()) {
    if (needs_chief_ || !budget_.TryGrant()) return false;
    rounds_->Open();
  }
  rounds_->Join(task);
  return true;
}

bool Coordinator::TryGrantTo(CoordinatorWorker& worker, absl::Time now) {
  CheckPause(now);
  const TaskKey task = KeyOf(worker.sender);
  if (rounds_.has_value()) {
    return !rounds_->must_end() && TryJoinRound(task);
  }
  if (worker.has_grant) return true;
  if (clocks_.has_value() && !clocks_->MayStart(task)) return false;
  if (!saves_.pauses_grants() && !needs_chief_) TakeGrantOf(worker);
  return worker.has_grant;
}

bool Coordinator::StepsWait() const {
  if (rounds_.has_value()) return !rounds_->must_end();
  return clocks_.has_value();
}

StepReply Coordinator::MakeStepReply(const CoordinatorWorker& worker,
                                     bool granted) const {
  StepReply reply;
  reply.set_granted(granted);
  reply.set_global_step(budget_.steps());
  reply.set_phase(phase_);
  reply.set_model_epoch(committed_epoch_);
  reply.set_state_version(state_version_);
  if (granted && rounds_.has_value()) {
    *reply.mutable_token() = rounds_->token();
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
  } else if (rounds_.has_value()) {
    ExplainRound(reply);
  } else if (clocks_.has_value()) {
    ExplainClocks(task, reply);
  }
}

void Coordinator::ExplainRound(StepReply& reply) const {
  const std::set<TaskKey> live = LiveTasks();
  reply.set_too_few_replicas(rounds_->must_end());
  if (rounds_->TooFew(live)) {
    reply.set_waiting_why(absl::StrCat(
        "more workers to come: ", live.size(),
        " there, replication.sync.min_replicas is ", rounds_->min_replicas()));
  } else if (rounds_->is_held()) {
    AddWaitingFor({KeyOf(chief_)}, reply);
    reply.set_waiting_why(
        absl::StrCat("to cut a checkpoint after step ", budget_.steps()));
  } else if (rounds_->Missing(live).empty() && rounds_->Awaited() > 0) {
    reply.set_waiting_why(absl::StrCat(
        rounds_->Awaited(), " of the job's workers, not started yet"));
  } else {
    AddWaitingFor(rounds_->Missing(live), reply);
    reply.set_waiting_why(
        absl::StrCat("to push its gradient of step ", rounds_->round()));
  }
}

void Coordinator::ExplainClocks(const TaskKey& task, StepReply& reply) const {
  if (!clocks_->Has(task)) return;
  if (!clocks_->MayStart(task)) {
    AddWaitingFor(clocks_->Slowest(), reply);
    reply.set_waiting_why(absl::StrCat(
        "to finish its step ", clocks_->slowest_clock() + 1,
        " of this model epoch (replication.bounded_staleness.bound is ",
        clocks_->bound(), ")"));
    return;
  }
  std::vector<TaskKey> last;
  for (const auto& [key, worker] : workers_) {
    if (worker.has_grant && worker.IsActive()) last.push_back(key);
  }
  AddWaitingFor(last, reply);
  reply.set_waiting_why("to report the last steps of the job");
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
  if (!waiting_steps_.empty()) SeeLiveTasks(now);
  for (WaitingStep& step : std::exchange(waiting_steps_, {})) {
    CoordinatorWorker& worker = workers_[step.task];
    const bool granted =
        phase_ == RUNNING && worker.IsActive() && TryGrantTo(worker, now);
    if (!granted && StepsWait() && step.state_version == state_version_ &&
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
  if (!rounds_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("hold rounds from ", TaskName(request.sender()),
                     ": the job's replication has no rounds; a snapshot needs "
                     "no token"));
  }
  if (request.pause()) {
    rounds_->Hold(now);
  } else {
    rounds_->Release();
    CheckRounds(now);
    CheckEnd(now);
    CheckSave(now);
  }
  PauseRoundsReply reply;
  *reply.mutable_token() = rounds_->token();
  *reply.mutable_state() = State();
  return reply;
}

}  // namespace muster
