#include "ps_server/coordinator/step_scheduler.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rows/row_ranges.h"
#include "ps_server/coordinator/awaited_workers.h"
#include "ps_server/coordinator/request_checks.h"

namespace muster {

StepScheduler::StepScheduler(JobRecord& job, JobSaves& saves)
    : job_(job),
      saves_(saves),
      attendance_(TrainingTasks(job.options().cluster)),
      gate_(StepGate::Free(GatedJob())) {}

StepGate::Job StepScheduler::GatedJob() {
  return {&job_.budget(), &job_.leases(),
          [this] { return job_.members().TakingSteps(); },
          attendance_.listed()};
}

// ---- The job's phases -----------------------------------------------------

absl::Status StepScheduler::Start(const CommitEpochRequest& commit,
                                  absl::Time now) {
  const absl::Time assembled_at = now + job_.options().worker_timeout;
  attendance_.Start(commit, assembled_at);
  ASSIGN_OR_RETURN(
      gate_, StepGate::Create(commit, GatedJob(), job_.members().Registered(),
                              assembled_at));
  StartRows(commit);
  return absl::OkStatus();
}

void StepScheduler::StartRows(const CommitEpochRequest& commit) {
  const int64_t limit = job_.budget().row_limit();
  if (!commit.resumes()) {
    RowLedger ledger = commit.ledger();
    if (ledger.epoch_rows() == 0 && ledger.kind() != "stream") {
      ledger.set_epoch_rows(commit.epoch_examples());
    }
    job_.leases().Start(ledger, limit, commit.batch_size());
  } else if (job_.leases().Resume(commit.epoch_examples(), limit,
                                  commit.batch_size())) {
    job_.Say(absl::StrCat("the data set has ", commit.epoch_examples(),
                          " examples now: the job goes on with a new epoch"));
  }
}

void StepScheduler::Clear() {
  gate_ = StepGate::Free(GatedJob());
  job_.leases().LeaveAll();
}

void StepScheduler::ForgetUnreported() {
  unreported_.Clear();
  cut_.Clear();
  confirmed_request_.clear();
}

std::string StepScheduler::ReachedLimit() {
  if (job_.budget().IsUsedUp()) return "steps";
  return gate_->HasNoRowsLeft() ? "epochs" : "";
}

void StepScheduler::AddTo(JobState& state) const {
  const StepRounds* const rounds = gate_->rounds();
  if (rounds != nullptr && rounds->is_open()) state.set_round(rounds->round());
  if (attendance_.update().workers() > 0) {
    *state.mutable_update() = attendance_.update();
  }
  if (job_.epoch().committed() != 0) {
    *state.mutable_rows() = job_.leases().Counts();
  }
}

// ---- Workers --------------------------------------------------------------

absl::Status StepScheduler::Report(CoordinatorWorker& worker,
                                   const StepRequest& request, absl::Time now) {
  if (request.has_pass()) job_.leases().AddPass(request.pass());
  if (request.step() <= worker.reported_step) return absl::OkStatus();
  if (request.abandoned() && request.step() <= worker.abandoned_step) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(gate_->CheckReport(request));
  // The rows of a round that is closed may be in other hands.
  const StepRounds* const rounds = gate_->rounds();
  if (rounds == nullptr || request.abandoned() ||
      request.round() >= rounds->round()) {
    RETURN_IF_ERROR(CheckLeasedRows(request, job_.leases()));
  }
  if (!request.abandoned()) {
    worker.reported_step = request.step();
    Count(gate_->Report(request, now), now);
  } else {
    worker.abandoned_step = request.step();
    ReturnGrant(worker,
                request.skipped() ? LeaveReason::kSkips : LeaveReason::kGivesUp,
                now);
  }
  return absl::OkStatus();
}

void StepScheduler::Answer(CoordinatorWorker& worker,
                           const StepRequest& request, uint64_t step_id,
                           bool asks, absl::Time now) {
  const TaskKey task = KeyOf(worker.sender);
  AnswerOlder(task);
  if (asks) gate_->SeeLive(now);
  const LeaseWish wish = {request.step_rows(), request.leases_ahead()};
  const bool granted = asks && TryGrantTo(task, wish, now);
  if (asks) worker.waits_for_grant = !granted;
  const absl::Duration wait =
      std::clamp(absl::Milliseconds(request.max_wait_ms()),
                 absl::ZeroDuration(), job_.options().max_watch);
  if (asks && !granted && gate_->MayWait() && wait > absl::ZeroDuration()) {
    waiting_.push_back({step_id, task, wish, job_.version(), now + wait});
    return;
  }
  StepReply reply = MakeReply(worker, granted);
  if (asks && !granted) ExplainWait(task).AddTo(reply);
  answers_.push_back({step_id, std::move(reply)});
}

void StepScheduler::AnswerOlder(const TaskKey& task) {
  const auto older =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [&task](const Waiting& step) { return step.task == task; });
  if (older == waiting_.end()) return;
  StepReply reply =
      MakeReply(job_.members().FindOrAdd(task), /*granted=*/false);
  ExplainWait(task).AddTo(reply);
  answers_.push_back({older->step_id, std::move(reply)});
  waiting_.erase(older);
}

void StepScheduler::ReturnGrant(CoordinatorWorker& worker, LeaveReason reason,
                                absl::Time now) {
  const std::optional<StepRequest> unreported = unreported_.Pop(worker);
  if (unreported.has_value()) {
    worker.reported_step = unreported->step();
    Count(gate_->Report(*unreported, now), now);
  }
  if (!gate_->Leave(KeyOf(worker.sender), reason)) return;
  if (job_.members().DoesAnyWaitForGrant()) job_.RaiseVersion();
}

void StepScheduler::Withdraw(CoordinatorWorker& worker, absl::Time now) {
  ReturnGrant(worker, LeaveReason::kIsReplaced, now);
  AnswerOlder(KeyOf(worker.sender));
}

void StepScheduler::Count(const DecidedSteps& steps, absl::Time now) {
  if (steps.chosen.empty() && steps.dropped.empty()) return;
  job_.members().Count(steps, now);
  cut_.Add(steps.chosen);
  // Who knows of the end already has the account without these.
  if (job_.phase() == STOPPING) job_.versions().RaiseAccount();
}

bool StepScheduler::TryGrantTo(const TaskKey& task, const LeaseWish& wish,
                               absl::Time now) {
  const int64_t usual = job_.leases().WishOf(task).step_rows;
  if (wish.step_rows > 0 && wish.step_rows != usual) {
    job_.Say(absl::StrCat(TaskName(task), " takes steps of ", wish.step_rows,
                          " rows, the chief of ", usual));
  }
  job_.leases().SetWish(task, wish);
  saves_.CheckPause(now);
  return gate_->TryEnter(task, saves_.pause());
}

StepReply StepScheduler::MakeReply(const CoordinatorWorker& worker,
                                   bool granted) {
  StepReply reply;
  reply.set_granted(granted);
  reply.set_global_step(job_.budget().steps());
  reply.set_phase(job_.phase());
  reply.set_model_epoch(job_.epoch().committed());
  reply.set_state_version(job_.version());
  if (!granted) return reply;
  *reply.mutable_token() = gate_->TokenFor(KeyOf(worker.sender));
  if (gate_->rounds() != nullptr) {
    reply.mutable_token()->set_chosen_step(worker.chosen_step);
  } else {
    StepCounts& counts = *reply.mutable_token()->mutable_counts();
    counts.set_steps(worker.steps);
    counts.set_examples(worker.examples);
  }
  const double factor = RateFactorOf(reply.token());
  if (factor != 1) reply.mutable_token()->set_learning_rate_factor(factor);
  AddLeases(KeyOf(worker.sender), reply);
  return reply;
}

void StepScheduler::AddLeases(const TaskKey& task, StepReply& reply) const {
  for (RowLease& lease : job_.leases().LeasesOf(task)) {
    *reply.add_leases() = std::move(lease);
  }
  if (reply.leases().empty()) return;
  const StreamPass pass = job_.leases().PassBefore(PlaceOf(reply.leases(0), 0));
  if (pass.pass() > 0) *reply.mutable_pass() = pass;
}

double StepScheduler::RateFactorOf(const StepToken& token) {
  if (token.round() > 0) return job_.evaluations().FactorOfRound(token.round());
  return job_.evaluations().FactorOf(job_.budget().steps() + 1);
}

StepWait StepScheduler::ExplainWait(const TaskKey& task) const {
  if (job_.phase() != RUNNING) return {};
  if (saves_.pause() != StepPause::kNone) return saves_.ExplainPause();
  return gate_->Explain(task, KeyOf(job_.chief()));
}

std::map<TaskKey, std::string> StepScheduler::DescribeWaits() const {
  std::map<TaskKey, std::string> waits;
  // Of a thousand workers nearly all wait for the same, and to find out takes a
  // look at each of them.
  std::optional<std::string> shared;
  for (const Waiting& step : waiting_) {
    if (saves_.pause() == StepPause::kNone &&
        !gate_->WaitsAsOthers(step.task)) {
      waits[step.task] = ExplainWait(step.task).Describe();
      continue;
    }
    if (!shared.has_value()) shared = ExplainWait(step.task).Describe();
    waits[step.task] = *shared;
  }
  return waits;
}

// ---- Time -----------------------------------------------------------------

void StepScheduler::Tick(absl::Time now) {
  gate_->SeeLive(now);
  SayAttendance(now);
  CheckRounds(now);
}

void StepScheduler::SayAttendance(absl::Time now) {
  const StepRounds* const rounds = gate_->rounds();
  if (job_.phase() != RUNNING ||
      (rounds == nullptr && !attendance_.IsDue(now))) {
    return;
  }
  const Members& members = job_.members();
  const int64_t gradients =
      rounds == nullptr ? 0 : rounds->GradientsOfUpdate(members.TakingSteps());
  for (std::string& line :
       attendance_.Look(members.Registered(), gradients, now)) {
    job_.Say(std::move(line));
    job_.RaiseVersion();
  }
}

int64_t StepScheduler::OthersUnderWay() const {
  // The step of a round that is stuck is in no update, and stays so while the
  // grants are paused.
  const int64_t under_way = gate_->IsStuck() ? 0 : job_.budget().outstanding();
  // The chief saves when its own step is counted; it may be in an evaluation,
  // which it then gives up.
  const int64_t of_chief = gate_->Holds(KeyOf(job_.chief())) ? 1 : 0;
  return std::max<int64_t>(0, under_way - of_chief);
}

absl::Time StepScheduler::NextDeadline() const {
  absl::Time deadline = gate_->NextDeadline();
  if (job_.phase() == RUNNING) {
    deadline = std::min(deadline, attendance_.assembled_at());
  }
  for (const Waiting& step : waiting_) {
    deadline = std::min(deadline, step.until);
  }
  return deadline;
}

std::vector<StepAnswer> StepScheduler::PopAnswers(absl::Time now) {
  if (!waiting_.empty()) gate_->SeeLive(now);
  for (Waiting& step : std::exchange(waiting_, {})) {
    CoordinatorWorker& worker = job_.members().FindOrAdd(step.task);
    const bool granted = job_.phase() == RUNNING && worker.IsActive() &&
                         TryGrantTo(step.task, step.wish, now);
    if (!granted && gate_->MayWait() &&
        step.state_version >= job_.versions().told() && now < step.until) {
      waiting_.push_back(std::move(step));
      continue;
    }
    worker.waits_for_grant = !granted;
    StepReply reply = MakeReply(worker, granted);
    if (!granted) ExplainWait(step.task).AddTo(reply);
    answers_.push_back({step.step_id, std::move(reply)});
  }
  return std::exchange(answers_, {});
}

void StepScheduler::Cut() {
  for (Waiting& step : waiting_) step.until = absl::InfinitePast();
}

// ---- Snapshots ------------------------------------------------------------

absl::Status StepScheduler::PauseRounds(const PauseRoundsRequest& request,
                                        absl::Time now) {
  StepRounds* const rounds = gate_->rounds();
  if (rounds == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("hold rounds from ", TaskName(request.sender()),
                     ": the job's replication has no rounds; a snapshot needs "
                     "no token"));
  }
  // After the last grant, or before a ps stops, a save may pause a round that
  // all have delivered, and the next save is the last: it wants that round's
  // update.
  if (!request.pause() || job_.phase() != RUNNING ||
      saves_.pause() == StepPause::kAll) {
    rounds->Release();
    CheckRounds(now);
  }
  if (request.pause()) rounds->Hold(now);
  return absl::OkStatus();
}

absl::Status StepScheduler::CheckHasNoRounds(absl::string_view what,
                                             const Sender& sender) const {
  if (gate_->rounds() == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " from ", TaskName(sender),
                   ": the job's replication has rounds, which tell the steps "
                   "of a cut"));
}

absl::Status StepScheduler::BeginCut(const BeginCutRequest& request,
                                     absl::Time now) {
  RETURN_IF_ERROR(CheckHasNoRounds("begin cut", request.sender()));
  const std::pair<uint64_t, int64_t> cut = {request.sender().incarnation(),
                                            request.cut()};
  const bool is_copy =
      cut.first == newest_cut_.first && cut.second <= newest_cut_.second;
  if (is_copy) return absl::OkStatus();
  newest_cut_ = cut;
  cut_.Begin();
  saves_.BeginCut(request.holds_steps(), now);
  confirmed_request_.clear();
  return absl::OkStatus();
}

absl::StatusOr<ConfirmCutReply> StepScheduler::ConfirmCut(
    const ConfirmCutRequest& request) {
  RETURN_IF_ERROR(CheckHasNoRounds("confirm cut", request.sender()));
  std::string bytes = request.SerializeAsString();
  // Steps that have been counted since the answer are in no log.
  if (bytes == confirmed_request_) return confirmed_;
  if (!cut_.has_begun()) {
    return absl::AbortedError(
        absl::StrCat("confirm cut from ", TaskName(request.sender()),
                     ": no cut has begun here, or too many steps ago; begin "
                     "one, and cut again"));
  }
  confirmed_ = CountHeld(request);
  std::set<TaskKey> unreported;
  for (const HeldStep& held : confirmed_.counted()) {
    const TaskKey task = KeyOf(held.sender());
    const CoordinatorWorker* const worker = job_.members().Find(task);
    if (held.step() > worker->reported_step) unreported.insert(task);
  }
  *confirmed_.mutable_ledger() =
      job_.leases().Ledger(unreported, cut_.RowsBehind(confirmed_.counted()));
  CountRepeated(request, unreported, confirmed_);
  cut_.Clear();
  saves_.ReleaseCut();
  confirmed_request_ = std::move(bytes);
  return confirmed_;
}

void StepScheduler::CountRepeated(const ConfirmCutRequest& request,
                                  const std::set<TaskKey>& unreported,
                                  ConfirmCutReply& reply) const {
  std::map<TaskKey, CutLog::Repeated> repeated =
      cut_.CountBegunBehind(reply.counted(), request.begun());
  for (const HeldStep& begun : request.begun()) {
    const TaskKey task = KeyOf(begun.sender());
    const int64_t rows =
        unreported.count(task) != 0 ? 0 : UnreportedRowsOf(begun);
    if (rows == 0) continue;
    ++repeated[task].steps;
    repeated[task].rows += rows;
  }
  RowLedger& ledger = *reply.mutable_ledger();
  for (const auto& [task, of_task] : repeated) {
    ledger.set_repeated(ledger.repeated() + of_task.rows);
    reply.set_repeated_steps(std::max(reply.repeated_steps(), of_task.steps));
  }
}

int64_t StepScheduler::UnreportedRowsOf(const HeldStep& begun) const {
  const TaskKey task = KeyOf(begun.sender());
  const CoordinatorWorker* const worker = job_.members().Find(task);
  const bool is_reported = worker == nullptr ||
                           !SameProcess(worker->sender, begun.sender()) ||
                           begun.step() <= worker->reported_step;
  // Those of one that was lost have been counted.
  if (is_reported || !job_.leases().HasBegun(task)) return 0;
  return NumRows(job_.leases().BegunOf(task));
}

ConfirmCutReply StepScheduler::CountHeld(const ConfirmCutRequest& request) {
  ConfirmCutReply reply;
  for (const HeldStep& held : request.held()) {
    const CoordinatorWorker* const worker =
        job_.members().Find(KeyOf(held.sender()));
    if (worker == nullptr || !SameProcess(worker->sender, held.sender())) {
      *reply.add_replaced() = held.sender();
    } else if (WillCount(*worker, held)) {
      *reply.add_counted() = held;
    }
  }
  return reply;
}

bool StepScheduler::WillCount(const CoordinatorWorker& worker,
                              const HeldStep& held) {
  if (held.step() <= worker.reported_step) {
    return held.counts().steps() <= worker.steps &&
           held.counts().examples() <= worker.examples;
  }
  // Its grant may have been returned, and its rows be in other hands.
  const TaskKey task = KeyOf(worker.sender);
  const int64_t rows =
      job_.leases().are_of_stream() ? 0 : NumRows(job_.leases().BegunOf(task));
  if (!UnreportedSteps::IsNextOf(worker, held, rows) ||
      !gate_->TryResume(task)) {
    return false;
  }
  unreported_.Add(worker, held);
  return true;
}

}  // namespace muster
