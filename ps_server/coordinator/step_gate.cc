#include "ps_server/coordinator/step_gate.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "ps_server/coordinator/round_rows.h"
#include "ps_server/coordinator/worker_clocks.h"

namespace muster {
namespace {

// As many tasks as a line of text can name.
constexpr int kMaxNamed = 16;

absl::Status RefuseReport(const StepRequest& report, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("step ", report.step(), " from ", TaskName(report.sender()),
                   ": it is of round ", report.round(), "; ", why));
}

absl::Status CheckHasNoRound(const StepRequest& report) {
  if (report.round() == 0 && !report.late()) return absl::OkStatus();
  return RefuseReport(report, "the job's replication has no rounds");
}

// Who trains on the last rows, in words for `task`, which has none.
StepWait ExplainRows(const RowLeases& leases, const TaskKey& task) {
  StepWait wait;
  for (const TaskKey& other : leases.Beginners()) {
    if (other != task) wait.waiting_for.push_back(other);
  }
  wait.why = wait.waiting_for.empty()
                 ? "other workers to train on the last rows of the job"
                 : "to train on the last rows of the job";
  return wait;
}

class FreeGate : public StepGate {
 public:
  explicit FreeGate(const Job& job)
      : job_(job), grants_(*job.budget, *job.leases, job.live_tasks) {}

  bool TryEnter(const TaskKey& task, StepPause pause) override {
    return grants_.Has(task) ||
           (pause == StepPause::kNone && grants_.TryTake(task));
  }
  absl::Status CheckReport(const StepRequest& report) const override {
    return CheckHasNoRound(report);
  }
  DecidedSteps Report(const StepRequest& report, absl::Time /*now*/) override {
    return grants_.Report(report);
  }
  bool Leave(const TaskKey& task, LeaveReason reason) override {
    return grants_.Leave(task, reason);
  }
  bool TryResume(const TaskKey& task) override {
    return grants_.TryResume(task);
  }
  bool HasNoRowsLeft() override {
    return grants_.HasNoRowsLeft([](const TaskKey&) { return true; });
  }
  bool Holds(const TaskKey& task) const override { return grants_.Has(task); }
  bool MayWait() const override { return false; }
  StepWait Explain(const TaskKey& task,
                   const TaskKey& /*chief*/) const override {
    if (!job_.budget->IsStepLeft()) return {};
    return ExplainRows(*job_.leases, task);
  }

 private:
  const Job job_;
  StepGrants grants_;
};

class ClocksGate : public StepGate {
 public:
  ClocksGate(const Job& job, int32_t bound)
      : job_(job),
        grants_(*job.budget, *job.leases, job.live_tasks),
        clocks_(bound) {}

  void SeeLive(absl::Time /*now*/) override {
    clocks_.SetLive(job_.live_tasks());
  }
  bool TryEnter(const TaskKey& task, StepPause pause) override {
    return grants_.Has(task) ||
           (clocks_.MayStart(task) && pause == StepPause::kNone &&
            grants_.TryTake(task));
  }
  absl::Status CheckReport(const StepRequest& report) const override {
    return CheckHasNoRound(report);
  }
  DecidedSteps Report(const StepRequest& report, absl::Time now) override;
  bool Leave(const TaskKey& task, LeaveReason reason) override {
    if (reason == LeaveReason::kIsReplaced) clocks_.Leave(task);
    return grants_.Leave(task, reason);
  }
  bool TryResume(const TaskKey& task) override {
    return grants_.TryResume(task);
  }
  // Rows that are too few for the slowest, which the others wait for, are left.
  bool HasNoRowsLeft() override {
    return grants_.HasNoRowsLeft([this](const TaskKey& task) {
      return !clocks_.Has(task) || clocks_.MayStart(task);
    });
  }
  bool Holds(const TaskKey& task) const override { return grants_.Has(task); }
  bool MayWait() const override { return true; }
  StepToken TokenFor(const TaskKey& task) const override {
    StepToken token;
    if (!clocks_.Has(task)) return token;
    token.set_clock(clocks_.ClockOf(task));
    token.set_values_until_clock(clocks_.slowest_clock() + clocks_.bound());
    return token;
  }
  StepWait Explain(const TaskKey& task, const TaskKey& chief) const override;
  bool WaitsAsOthers(const TaskKey& task) const override {
    return clocks_.Has(task) && !clocks_.MayStart(task);
  }

 private:
  const Job job_;
  StepGrants grants_;
  WorkerClocks clocks_;
};

DecidedSteps ClocksGate::Report(const StepRequest& report, absl::Time now) {
  const TaskKey task = KeyOf(report.sender());
  if (job_.live_tasks().count(task) != 0) {
    SeeLive(now);
    clocks_.FinishStep(task);
  }
  return grants_.Report(report);
}

StepWait ClocksGate::Explain(const TaskKey& task,
                             const TaskKey& /*chief*/) const {
  StepWait wait;
  if (!clocks_.Has(task)) return wait;
  if (!clocks_.MayStart(task)) {
    wait.waiting_for = clocks_.Slowest();
    wait.why = absl::StrCat(
        "to finish its step ", clocks_.slowest_clock() + 1,
        " of this model epoch (replication.bounded_staleness.bound is ",
        clocks_.bound(), ")");
    return wait;
  }
  if (job_.budget->IsStepLeft()) return ExplainRows(*job_.leases, task);
  for (const TaskKey& live : job_.live_tasks()) {
    if (grants_.Has(live)) wait.waiting_for.push_back(live);
  }
  wait.why = "to report the last steps of the job";
  return wait;
}

class RoundsGate : public StepGate {
 public:
  RoundsGate(const Job& job, StepRounds rounds)
      : job_(job),
        leases_(*job.leases),
        rows_(leases_),
        rounds_(std::move(rounds)) {}

  void SeeLive(absl::Time now) override {
    rounds_.SeeLive(job_.live_tasks(), now);
  }
  bool TryEnter(const TaskKey& task, StepPause pause) override;
  absl::Status CheckReport(const StepRequest& report) const override;
  DecidedSteps Report(const StepRequest& report, absl::Time now) override;
  DecidedSteps TryClose(absl::Time now) override;
  bool Leave(const TaskKey& task, LeaveReason reason) override;
  bool HasNoRowsLeft() override;
  bool Holds(const TaskKey& task) const override {
    const std::set<TaskKey> live = job_.live_tasks();
    return !rounds_.TooFew(live) &&
           rounds_.Missing(live) == std::vector<TaskKey>{task};
  }
  void End() override { has_ended_ = true; }
  bool IsStuck() const override { return rounds_.IsStuck(job_.live_tasks()); }
  StepToken TokenFor(const TaskKey& /*task*/) const override {
    return rounds_.token();
  }
  bool MayWait() const override { return !rounds_.must_end(); }
  StepWait Explain(const TaskKey& task, const TaskKey& chief) const override;
  bool WaitsAsOthers(const TaskKey& task) const override {
    return rounds_.HasDelivered(task) || !rows_.IsWithout(task);
  }
  absl::Time NextDeadline() const override;
  StepRounds* rounds() override { return &rounds_; }

 private:
  // Offers the step to the open round.
  bool TryDeliver(const StepRequest& report);
  // Begins a lease of the task in the open round.
  bool TryBegin(const TaskKey& task);
  // Opens a round for which there are rows and a grant.
  bool TryOpen();
  // The same for a task that asks for a step.
  bool TryOpenWith(const TaskKey& task);
  // Those who are to have rows when a round opens: who is there, and listed
  // tasks that are still awaited.
  std::set<TaskKey> Expected() const;
  bool DealFirsts();
  // The listed tasks that are not there.
  std::vector<TaskKey> Absent(const std::set<TaskKey>& live) const;

  const Job job_;
  RowLeases& leases_;
  RoundRows rows_;
  StepRounds rounds_;
  bool has_ended_ = false;
};

bool RoundsGate::TryEnter(const TaskKey& task, StepPause pause) {
  if (rounds_.must_end()) return false;
  if (rounds_.HasJoined(task)) return true;
  if (pause == StepPause::kAll || rounds_.HasDelivered(task)) return false;
  if (!rounds_.is_open() && (pause != StepPause::kNone || !TryOpenWith(task))) {
    return false;
  }
  if (!TryBegin(task)) return false;
  rounds_.Join(task);
  return true;
}

bool RoundsGate::TryOpenWith(const TaskKey& task) {
  if (TryOpen()) return true;
  // What it has begun is of a round that closed without it. It asks for another
  // one: nobody may come to train on these rows.
  if (!leases_.HasBegun(task)) return false;
  leases_.GiveBack(task);
  return TryOpen();
}

bool RoundsGate::TryBegin(const TaskKey& task) {
  if (leases_.HasBegun(task) || leases_.TryReclaim(task)) return true;
  if (!rows_.TryDealTo(task)) return false;
  leases_.Begin(task);
  return true;
}

bool RoundsGate::TryOpen() {
  if (!job_.budget->TryGrant()) return false;
  const int64_t rounds_left = job_.budget->grants_left();
  // Who is slow may have more ahead than there are rounds.
  if (rounds_left < leases_.WishOf({}).ahead) leases_.Recall();
  if (!DealFirsts()) {
    job_.budget->Return();
    return false;
  }
  // Workers that are to come, and have no name yet, get their first rows before
  // others get their next ones.
  const std::set<TaskKey> expected = Expected();
  if (static_cast<int64_t>(expected.size()) >=
      rounds_.Needed(job_.live_tasks())) {
    rows_.DealAhead(expected, rounds_left);
  }
  rounds_.Open();
  return true;
}

std::set<TaskKey> RoundsGate::Expected() const {
  std::set<TaskKey> expected = job_.live_tasks();
  if (rounds_.Awaited() == 0) return expected;
  for (const TaskKey& task : job_.listed) {
    if (!rounds_.HasCome(task)) expected.insert(task);
  }
  return expected;
}

bool RoundsGate::DealFirsts() {
  return rows_.DealFirsts(Expected(), rounds_.Needed(job_.live_tasks()));
}

bool RoundsGate::HasNoRowsLeft() {
  return !rounds_.is_open() && job_.budget->outstanding() == 0 &&
         leases_.num_begun() == 0 && !job_.live_tasks().empty() &&
         !DealFirsts();
}

bool RoundsGate::Leave(const TaskKey& task, LeaveReason reason) {
  rounds_.Leave(task);
  if (reason == LeaveReason::kIsReplaced) rounds_.Withdraw(task);
  // Its gradient is in every shard, and may be chosen.
  const bool has_delivered = rounds_.HasDelivered(task);
  switch (reason) {
    case LeaveReason::kGivesUp:
      if (!has_delivered) leases_.GiveBack(task);
      break;
    case LeaveReason::kSkips:
      if (!has_delivered && leases_.HasBegun(task)) leases_.Skip(task);
      break;
    case LeaveReason::kFinishes:
    case LeaveReason::kIsLost:
    case LeaveReason::kIsReplaced:
      if (has_delivered) {
        leases_.GiveBackAhead(task);
      } else if (reason == LeaveReason::kIsLost) {
        leases_.Lapse(task, /*may_repeat=*/false);
      } else {
        leases_.Leave(task, /*may_repeat=*/false);
      }
      return false;
  }
  leases_.ForgetLapsed(task);
  return false;
}

DecidedSteps RoundsGate::Report(const StepRequest& report, absl::Time) {
  const TaskKey task = KeyOf(report.sender());
  const bool is_of_lapsed = leases_.IsOfLapsed(task, report.rows());
  if (!is_of_lapsed && !rounds_.HasDelivered(task)) {
    if (TryDeliver(report)) return {};
    // A copy of its question may have let it into the open round with the rows
    // of this step.
    rounds_.Leave(task);
    leases_.GiveBack(task);
  }
  leases_.ForgetLapsed(task);
  return {{}, {Delivery::Of(report)}};
}

absl::Status RoundsGate::CheckReport(const StepRequest& report) const {
  if (report.abandoned() ||
      (report.round() >= 1 && report.round() <= rounds_.round())) {
    return absl::OkStatus();
  }
  return RefuseReport(
      report,
      absl::StrCat("wanted one that was given out, 1 to ", rounds_.round()));
}

bool RoundsGate::TryDeliver(const StepRequest& report) {
  if (report.round() != rounds_.round() || report.late() || has_ended_) {
    return false;
  }
  const TaskKey task = KeyOf(report.sender());
  if (!leases_.HasBegun(task) && leases_.HasLapsed(task) &&
      !leases_.TryReclaim(task)) {
    return false;
  }
  // Closed behind a worker that was lost, and is back with its step.
  if (!rounds_.is_open() && !TryOpen()) return false;
  if (!TryBegin(task)) return false;
  return rounds_.Deliver(Delivery::Of(report));
}

DecidedSteps RoundsGate::TryClose(absl::Time now) {
  if (!rounds_.is_open() && !rounds_.is_held()) return {};
  const std::set<TaskKey> live = job_.live_tasks();
  const bool are_rows_left = leases_.CanDeal(leases_.most_step_rows());
  auto closed = rounds_.TryClose(
      live, now, are_rows_left ? 0 : rows_.CountWithout(rounds_.Missing(live)));
  if (!closed.has_value()) {
    if (rounds_.IsIdle()) {
      rounds_.Retract();
      job_.budget->Return();
    }
    return {};
  }
  int64_t examples = 0;
  for (Delivery& step : closed->chosen) {
    examples += step.examples;
    step.rows = leases_.Finish(KeyOf(step.sender));
  }
  for (const Delivery& step : closed->dropped) {
    leases_.GiveBack(KeyOf(step.sender));
  }
  job_.budget->Report(examples);
  return *std::move(closed);
}

std::vector<TaskKey> RoundsGate::Absent(const std::set<TaskKey>& live) const {
  std::vector<TaskKey> absent;
  std::set_difference(job_.listed.begin(), job_.listed.end(), live.begin(),
                      live.end(), std::back_inserter(absent));
  return absent;
}

StepWait RoundsGate::Explain(const TaskKey& task, const TaskKey& chief) const {
  const std::set<TaskKey> live = job_.live_tasks();
  StepWait wait;
  wait.too_few_replicas = rounds_.must_end();
  if (rounds_.TooFew(live)) {
    wait.waiting_for = Absent(live);
    wait.why = absl::StrCat(
        wait.waiting_for.empty() ? "more workers to come: " : "to come: ",
        live.size(), " there, replication.sync.min_replicas is ",
        rounds_.min_replicas());
  } else if (rounds_.is_held()) {
    wait.waiting_for = {chief};
    wait.why =
        absl::StrCat("to cut a checkpoint after step ", job_.budget->steps());
  } else if (!rounds_.HasDelivered(task) && rows_.IsWithout(task)) {
    wait = ExplainRows(leases_, task);
  } else if (rounds_.Missing(live).empty() && rounds_.Awaited() > 0) {
    for (const TaskKey& absent : Absent(live)) {
      if (!rounds_.HasCome(absent)) wait.waiting_for.push_back(absent);
    }
    wait.why = "to come";
    // The cluster need not list all, or any.
    if (static_cast<int64_t>(wait.waiting_for.size()) < rounds_.Awaited()) {
      wait.waiting_for.clear();
      wait.why =
          absl::StrCat(rounds_.Awaited(), " of the job's workers to come");
    }
  } else {
    wait.waiting_for = rounds_.Missing(live);
    wait.why = absl::StrCat("to push its gradient of step ", rounds_.round());
  }
  return wait;
}

absl::Time RoundsGate::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  if (rounds_.is_held()) deadline = rounds_.held_until();
  if (rounds_.Awaited() > 0) {
    deadline = std::min(deadline, rounds_.assembled_at());
  }
  return deadline;
}

}  // namespace

void StepWait::AddTo(StepReply& reply) const {
  for (const TaskKey& task : waiting_for) {
    if (reply.waiting_for_size() >= kMaxNamed) break;
    TaskId* const id = reply.add_waiting_for();
    id->set_job(task.first);
    id->set_index(task.second);
  }
  reply.set_waiting_why(why);
  reply.set_too_few_replicas(too_few_replicas);
}

std::string StepWait::Describe() const {
  std::string text;
  for (size_t i = 0; i < waiting_for.size() && i < kMaxNamed; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", TaskName(waiting_for[i]));
  }
  absl::StrAppend(&text, text.empty() || why.empty() ? "" : " ", why);
  return text;
}

std::unique_ptr<StepGate> StepGate::Free(const Job& job) {
  return std::make_unique<FreeGate>(job);
}

absl::StatusOr<std::unique_ptr<StepGate>> StepGate::Create(
    const CommitEpochRequest& commit, const Job& job, std::set<TaskKey> known,
    absl::Time assembled_at) {
  const ReplicationSpec& spec = commit.replication();
  const std::string what = absl::StrCat("commit epoch ", commit.model_epoch());
  if (spec.has_sync()) {
    RETURN_IF_ERROR(Annotate(StepRounds::Check(spec.sync()), what));
    RETURN_IF_ERROR(job.budget->Start(commit));
    return std::make_unique<RoundsGate>(
        job, StepRounds(spec.sync(), commit.global_step(), std::move(known),
                        assembled_at));
  }
  if (spec.has_bounded_staleness()) {
    const int32_t bound = spec.bounded_staleness().bound();
    RETURN_IF_ERROR(Annotate(WorkerClocks::Check(bound), what));
    RETURN_IF_ERROR(job.budget->Start(commit));
    return std::make_unique<ClocksGate>(job, bound);
  }
  if (spec.has_all_reduce()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        ": the replication is all_reduce, which is sync {} to ps task "
        "0: say how many workers there are"));
  }
  RETURN_IF_ERROR(job.budget->Start(commit));
  return Free(job);
}

}  // namespace muster
