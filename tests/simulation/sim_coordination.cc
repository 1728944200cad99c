#include "tests/simulation/sim_coordination.h"

#include <string>
#include <utility>

#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "tests/simulation/sim_ps.h"

namespace muster {

SimCoordination::SimCoordination(Options options)
    : options_(std::move(options)), coordinator_(options_.coordinator) {}

absl::Time SimCoordination::HeardOf(int ps_task) const {
  const auto heard = heard_.find(ps_task);
  return heard == heard_.end() ? absl::InfiniteFuture() : heard->second;
}

bool SimCoordination::KeptModelOf(uint64_t incarnation) const {
  const auto unsaved = unsaved_.find(incarnation);
  return unsaved != unsaved_.end() &&
         done_ >= unsaved->second + options_.coordinator.worker_timeout;
}

void SimCoordination::OnRegistered(const RegisterRequest& request) {
  const Sender& sender = request.sender();
  options_.oracle->Registered(options_.incarnation, sender);
  options_.network->OnRegistered(sender, [network = options_.network,
                                          again = request.SerializeAsString()] {
    if (network->ps(0) == nullptr) return;
    network->ps(0)->calls().CallBytes(
        kRegisterCall, again, absl::InfiniteFuture(),
        [](const absl::StatusOr<std::string>&) {});
  });
  if (!request.chief()) return;
  options_.oracle->ChiefRegistered(options_.incarnation, sender);
  options_.network->OnChiefRegistered(sender.namespace_());
}

// ---- Calls --------------------------------------------------------------

absl::StatusOr<AssignTaskReply> SimCoordination::Handle(
    const AssignTaskRequest& request) {
  return coordinator_.AssignTask(request, Now());
}

absl::StatusOr<RegisterReply> SimCoordination::Handle(
    const RegisterRequest& request) {
  if (const auto lost = options_.bugs->rows().LoseRowsOf(request)) {
    coordinator_.Step(*lost, next_call_++, Now()).IgnoreError();
  }
  absl::StatusOr<RegisterReply> reply = coordinator_.Register(request, Now());
  if (reply.ok() && reply->takeover() != 0 &&
      options_.bug == Bug::kTakeoverUnconfirmed) {
    RegisterRequest confirmed = request;
    confirmed.set_takeover(reply->takeover());
    reply = coordinator_.Register(confirmed, Now());
  }
  if (reply.ok() && reply->takeover() == 0 && !request.asks_only()) {
    OnRegistered(request);
  }
  return reply;
}

absl::StatusOr<BeginEpochReply> SimCoordination::Handle(
    const BeginEpochRequest& request) {
  BeginEpochRequest forged = request;
  options_.bugs->ForgeLease(coordinator_, forged.mutable_sender());
  absl::StatusOr<BeginEpochReply> reply =
      coordinator_.BeginEpoch(forged, Now());
  if (reply.ok()) {
    options_.oracle->LeaseUsed(options_.incarnation, request.sender());
  }
  return reply;
}

absl::StatusOr<CommitEpochReply> SimCoordination::Handle(
    const CommitEpochRequest& request) {
  CommitEpochRequest forged = request;
  options_.bugs->ForgeLease(coordinator_, forged.mutable_sender());
  if (options_.bug == Bug::kRestoreForgetsFront) forged.clear_ledger();
  absl::StatusOr<CommitEpochReply> reply =
      coordinator_.CommitEpoch(forged, Now());
  if (reply.ok()) {
    options_.oracle->LeaseUsed(options_.incarnation, request.sender());
    options_.oracle->AfterCommit(request);
  }
  return reply;
}

absl::StatusOr<FinishReply> SimCoordination::Handle(
    const FinishRequest& request) {
  absl::StatusOr<FinishReply> reply = coordinator_.Finish(request, Now());
  options_.on_finish();
  if (request.unsaved()) {
    unsaved_.try_emplace(request.sender().incarnation(), Now());
  }
  return reply;
}

absl::StatusOr<RequestSaveReply> SimCoordination::Handle(
    const RequestSaveRequest& request) {
  return coordinator_.RequestSave(request, Now());
}

absl::StatusOr<ReportSaveReply> SimCoordination::Handle(
    const ReportSaveRequest& request) {
  return coordinator_.ReportSave(request, Now());
}

absl::StatusOr<PauseRoundsReply> SimCoordination::Handle(
    const PauseRoundsRequest& request) {
  absl::StatusOr<PauseRoundsReply> reply =
      coordinator_.PauseRounds(request, Now());
  if (!reply.ok()) return reply;
  options_.oracle->TokenGiven(options_.incarnation, request.model_epoch(),
                              reply->token());
  if (options_.bug == Bug::kDoneBeforeCounted) {
    reply->mutable_ledger()->clear_undone();
  }
  return reply;
}

absl::StatusOr<BeginCutReply> SimCoordination::Handle(
    const BeginCutRequest& request) {
  return coordinator_.BeginCut(request, Now());
}

absl::StatusOr<ConfirmCutReply> SimCoordination::Handle(
    const ConfirmCutRequest& request) {
  ConfirmCutRequest forged = request;
  if (options_.bug == Bug::kCountedBeforeTheCuts) forged.clear_held();
  absl::StatusOr<ConfirmCutReply> reply =
      coordinator_.ConfirmCut(forged, Now());
  if (!reply.ok()) return reply;
  options_.oracle->CutConfirmed(options_.incarnation, forged, *reply);
  if (options_.bug == Bug::kDoneBeforeCounted) {
    reply->mutable_ledger()->clear_undone();
  }
  return reply;
}

void SimCoordination::Step(StepRequest request, ReplyCallback<StepReply> done) {
  options_.bugs->Forge(coordinator_, &request);
  options_.bugs->rows().Forge(&request);
  const uint64_t id = next_call_++;
  const absl::Status status = coordinator_.Step(request, id, Now());
  if (!status.ok()) return done(status);
  steps_[id] = std::move(done);
  step_senders_[id] = request.sender();
  options_.oracle->AfterStep(coordinator_);
  AnswerSteps();
}

void SimCoordination::Watch(const WatchRequest& request,
                            ReplyCallback<JobState> done) {
  const uint64_t id = next_call_++;
  const absl::Status status = coordinator_.Watch(request, id, Now());
  if (!status.ok()) return done(status);
  watches_[id] = std::move(done);
  if (request.sender().task().job() == kPsJob) {
    heard_[request.sender().task().index()] = Now();
  }
  AnswerDueWatches();
}

// ---- Time ---------------------------------------------------------------

absl::Time SimCoordination::Advance() {
  if (!alive_) return absl::InfiniteFuture();
  coordinator_.Tick(Now());
  AnswerDueWatches();
  // Nobody takes steps of a default job that there is not.
  if (options_.oracle != nullptr) AnswerSteps();
  SeeEnd();
  if (coordinator_.EndIsKnown() && !std::exchange(told_end_, true)) {
    options_.on_end();
  }
  return coordinator_.NextDeadline();
}

void SimCoordination::AnswerDueWatches() {
  for (const WatchAnswer& answer : coordinator_.TakeAnswers(Now())) {
    const auto watch = watches_.extract(answer.watch_id);
    if (!watch.empty()) watch.mapped()(answer.state);
  }
}

void SimCoordination::SeeEnd() {
  const bool is_done = coordinator_.phase() == DONE;
  const bool was_done = done_ < absl::InfiniteFuture();
  if (is_done == was_done) return;
  done_ = is_done ? Now() : absl::InfiniteFuture();
  if (is_done) {
    options_.oracle->AtJobEnd(coordinator_.State());
  } else {
    options_.oracle->JobGoesOn();
  }
}

void SimCoordination::AnswerSteps() {
  options_.oracle->SampleClocks(options_.incarnation, coordinator_);
  for (const StepAnswer& answer : coordinator_.TakeStepAnswers(Now())) {
    const Sender asker = step_senders_[answer.step_id];
    step_senders_.erase(answer.step_id);
    StepReply reply = answer.reply;
    options_.bugs->rows().Forge(asker, &reply);
    if (reply.granted()) {
      options_.oracle->TokenGiven(options_.incarnation, reply.model_epoch(),
                                  reply.token());
      options_.oracle->StepGranted(asker, reply);
    }
    const auto step = steps_.extract(answer.step_id);
    if (!step.empty()) step.mapped()(reply);
  }
}

void SimCoordination::Die() {
  alive_ = false;
  watches_.clear();
  steps_.clear();
}

void SimCoordination::AnswerWatches() {
  for (auto& [id, done] : std::exchange(watches_, {})) {
    done(coordinator_.State());
  }
}

void SimCoordination::Refuse(const absl::Status& why) {
  for (auto& [id, done] : std::exchange(watches_, {})) done(why);
  for (auto& [id, done] : std::exchange(steps_, {})) done(why);
}

}  // namespace muster
