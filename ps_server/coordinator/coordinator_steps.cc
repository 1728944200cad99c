// The part of Coordinator that counts: reports, grants and the end.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/coordinator/coordinator.h"

namespace muster {
namespace {

// The most of one report: a sum of them stays far from an overflow.
constexpr int64_t kMaxStepCount = 1'000'000'000'000;

absl::Status CheckNumbers(const StepRequest& request, int64_t batch_size) {
  if (request.step() >= 0 && request.examples() >= 0 &&
      (batch_size == 0 || request.examples() <= batch_size) &&
      request.examples() <= kMaxStepCount && request.staleness() >= 0 &&
      request.staleness() <= kMaxStepCount &&
      request.position().ByteSizeLong() <=
          CoordinatorWorker::kMaxPositionBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "step ", request.step(), " from ", TaskName(request.sender()),
      ": examples ", request.examples(), " (a step has ", batch_size,
      "), staleness ", request.staleness(), ", a data position of ",
      request.position().ByteSizeLong(), " bytes (at most ",
      CoordinatorWorker::kMaxPositionBytes, "): a count is out of range"));
}

}  // namespace

uint64_t Coordinator::FirstPsIncarnation() const {
  const auto first = ps_incarnations_.find(0);
  return first == ps_incarnations_.end() ? 0 : first->second;
}

bool Coordinator::IsCurrent(int64_t model_epoch,
                            uint64_t ps_incarnation) const {
  return model_epoch == committed_epoch_ &&
         ps_incarnation == FirstPsIncarnation();
}

absl::Status Coordinator::Step(const StepRequest& request, uint64_t step_id,
                               absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   FindSender("step", request.sender(), now));
  RETURN_IF_ERROR(CheckNumbers(request, budget_.batch_size()));
  RETURN_IF_ERROR(CheckMayStop(request.stop_reason(), request.sender()));
  const bool is_current =
      committed_epoch_ != 0 &&
      IsCurrent(request.model_epoch(), request.ps_incarnation());
  if (is_current && request.step() > worker->reported_step) {
    RETURN_IF_ERROR(gate_->CheckReport(request));
    if (!request.abandoned()) {
      worker->reported_step = request.step();
      Count(gate_->Report(request, now), now);
    } else if (request.step() > worker->abandoned_step) {
      worker->abandoned_step = request.step();
      ReturnGrant(*worker);
    }
  }
  if (is_current && phase_ == RUNNING && !request.stop_reason().empty()) {
    Stop(EscapeForLog(request.stop_reason(), 200));
  }
  CheckRounds(now);
  CheckEnd(now);
  CheckSave(now);
  // A worker that gave a step up asks for the next in a call of its own.
  const bool asks = is_current && !request.abandoned() && phase_ == RUNNING &&
                    worker->IsActive();
  Answer(*worker, request, step_id, asks, now);
  return absl::OkStatus();
}

void Coordinator::Answer(CoordinatorWorker& worker, const StepRequest& request,
                         uint64_t step_id, bool asks, absl::Time now) {
  const TaskKey task = KeyOf(worker.sender);
  AnswerOlderStep(task);
  if (asks) gate_->SeeLive(now);
  const bool granted = asks && TryGrantTo(task, now);
  if (asks) worker.waits_for_grant = !granted;
  const absl::Duration wait =
      std::clamp(absl::Milliseconds(request.max_wait_ms()),
                 absl::ZeroDuration(), options_.max_watch);
  if (asks && !granted && gate_->MayWait() && wait > absl::ZeroDuration()) {
    waiting_steps_.push_back({step_id, task, state_version_, now + wait});
    return;
  }
  StepReply reply = MakeStepReply(worker, granted);
  if (asks && !granted) ExplainWait(task, reply);
  step_answers_.push_back({step_id, std::move(reply)});
}

absl::Status Coordinator::CheckMayStop(absl::string_view reason,
                                       const Sender& sender) const {
  if (reason.empty() || KeyOf(sender) == KeyOf(chief_)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("step: ", TaskName(sender),
                   " asks everybody to stop, but is not the chief"));
}

void Coordinator::ReturnGrant(CoordinatorWorker& worker) {
  if (!gate_->Leave(KeyOf(worker.sender))) return;
  const bool anybody_waits =
      std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
        return entry.second.waits_for_grant && entry.second.IsActive();
      });
  if (anybody_waits) ++state_version_;
}

void Coordinator::RestoreWorkers(const CommitEpochRequest& request) {
  // Those that an earlier manifest alone knew.
  for (auto it = workers_.begin(); it != workers_.end();) {
    it = it->second.sender.incarnation() == 0 ? workers_.erase(it)
                                              : std::next(it);
  }
  staleness_counts_.clear();
  start_position_ = request.start_position();
  for (auto& [key, worker] : workers_) {
    worker.ResetRate();
    worker.steps = 0;
    worker.examples = 0;
    worker.position = start_position_;
    worker.staleness_sum = 0;
    worker.staleness_count = 0;
    worker.dropped_steps = 0;
    worker.waits_for_grant = false;
  }
  for (const WorkerState& saved : request.workers()) {
    CoordinatorWorker& worker = workers_[KeyOf(saved.sender())];
    if (worker.sender.incarnation() == 0) {
      worker.sender.mutable_task()->set_job(saved.sender().task().job());
      worker.sender.mutable_task()->set_index(saved.sender().task().index());
    }
    worker.steps = saved.steps();
    worker.examples = saved.examples();
    worker.position = saved.position();
    worker.staleness_sum = saved.staleness_sum();
    worker.staleness_count = saved.staleness_count();
    worker.dropped_steps = saved.dropped_steps();
  }
}

absl::Status Coordinator::CheckMayFinish(const FinishRequest& request) const {
  if (KeyOf(request.sender()) == KeyOf(chief_)) return absl::OkStatus();
  if (request.stop_job()) {
    return absl::InvalidArgumentError(
        absl::StrCat("finish: ", TaskName(request.sender()),
                     " asks everybody to stop, but is not the chief"));
  }
  if (request.unsaved()) {
    return absl::InvalidArgumentError(
        absl::StrCat("finish: ", TaskName(request.sender()),
                     " could not save the model, but is not the chief"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FinishReply> Coordinator::Finish(const FinishRequest& request,
                                                absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   FindSender("finish", request.sender(), now));
  RETURN_IF_ERROR(CheckMayFinish(request));
  FinishReply reply;
  if (request.stays() &&
      (phase_ != STOPPING ||
       !IsCurrent(request.model_epoch(), request.ps_incarnation()))) {
    *reply.mutable_state() = State();
    return reply;
  }
  ReturnGrant(*worker);
  if (worker->IsActive()) {
    worker->state =
        request.stays() ? MemberState::kStaying : MemberState::kFinished;
    worker->unsaved = worker->awaited = request.unsaved();
    ++state_version_;
  } else if (!request.stays()) {
    worker->state = MemberState::kFinished;
  }
  if (request.stop_job() && (phase_ == RUNNING || phase_ == INITIAL)) {
    Stop(absl::StrCat(EscapeForLog(request.reason(), 200), " (",
                      TaskName(request.sender()), ")"));
  }
  if (phase_ == STOPPING && !request.stays() && !request.unsaved() &&
      KeyOf(request.sender()) == KeyOf(chief_)) {
    last_save_made_ = true;
  }
  CheckRounds(now);
  CheckEnd(now);
  *reply.mutable_state() = State();
  return reply;
}

void Coordinator::Stop(std::string reason) {
  stop_reason_ = std::move(reason);
  SetPhase(STOPPING);
}

bool Coordinator::EverybodyCame() const {
  const auto came =
      std::count_if(workers_.begin(), workers_.end(),
                    [](const auto& entry) { return entry.second.registered; });
  return came >= options_.expected_tasks;
}

void Coordinator::CheckEnd(absl::Time now) {
  if (phase_ == RUNNING) {
    std::string limit = budget_.ReachedLimit();
    if (!limit.empty()) Stop(std::move(limit));
  }
  if (GivesUpLastSave(now)) return End(now);
  const bool is_waited_for =
      AwaitsLastSave() ||
      std::any_of(workers_.begin(), workers_.end(),
                  [](const auto& entry) { return entry.second.IsWaitedFor(); });
  if (phase_ != STOPPING || is_waited_for) {
    idle_since_ = absl::InfiniteFuture();
    return;
  }
  idle_since_ = std::min(idle_since_, now);
  if (EverybodyCame() || now >= idle_since_ + options_.latecomer_wait) {
    End(now);
  }
}

void Coordinator::End(absl::Time now) {
  chief_gone_since_ = absl::InfiniteFuture();
  SetPhase(DONE);
  gate_->End();
  listeners_.OnEnd(state_version_, now);
}

}  // namespace muster
