#include "ps_server/coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "ps_server/coordinator/members.h"
#include "ps_server/coordinator/request_checks.h"

namespace muster {

Coordinator::Coordinator(CoordinatorOptions options)
    : job_(std::move(options)),
      admission_(job_.options().cluster, job_.options().max_unlisted_tasks),
      guard_(job_, admission_),
      saves_(job_),
      steps_(job_, saves_),
      end_(job_, saves_, steps_, numbers_),
      steering_(job_, saves_) {}

// ---- Members --------------------------------------------------------------

void Coordinator::Hear(CoordinatorWorker& worker, absl::Time now) {
  worker.last_heard = std::max(worker.last_heard, now);
  if (phase() == DONE) end_.listeners().OnTold(KeyOf(worker.sender));
  if (worker.state != MemberState::kLost) return;
  worker.state = MemberState::kActive;
  TellOf(worker, now);
  job_.Say(absl::StrCat(TaskName(worker.sender), " is back"));
}

// A worker that was refused a step may have one when somebody leaves.
void Coordinator::TellOf(const CoordinatorWorker& worker, absl::Time now) {
  if (worker.may_be_chief) return job_.RaiseVersion();
  const bool frees_steps = !worker.IsActive() && phase() == RUNNING &&
                           job_.members().DoesAnyWaitForGrant();
  job_.versions().RaiseForMember(frees_steps, now);
}

absl::StatusOr<CoordinatorWorker*> Coordinator::FindSender(
    absl::string_view request, const Sender& sender, absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   job_.members().FindSender(request, sender));
  Hear(*worker, now);
  return worker;
}

absl::Status Coordinator::CheckLease(absl::string_view request,
                                     const Sender& sender, absl::Time now) {
  RETURN_IF_ERROR(FindSender(request, sender, now).status());
  if (SameProcess(job_.chief(), sender)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      request, ": ", TaskName(sender), " incarnation ",
      absl::Hex(sender.incarnation()), " has lost the chief lease"));
}

// All others hear of the difference when they register again.
void Coordinator::ExpelAllBut(const TaskKey& key, absl::Time now) {
  for (auto& [other, worker] : job_.members()) {
    if (other == key || !worker.registered) continue;
    job_.Say(absl::StrCat(TaskName(other),
                          " came with another training, or other data, than ",
                          TaskName(key), ": it has to register again"));
    steps_.Withdraw(worker, now);
    worker.Expel();
  }
}

CoordinatorWorker& Coordinator::AdmitSender(const Sender& sender,
                                            absl::Time now) {
  CoordinatorWorker& worker = job_.members().FindOrAdd(KeyOf(sender));
  // Who comes back to a job that is done has finished if its task had, and has
  // left nothing to do.
  const bool has_finished =
      phase() == DONE && worker.HasFinished() && !worker.unsaved;
  // A task that is known from a manifest alone has no process yet.
  if (worker.sender.incarnation() != 0 &&
      worker.sender.incarnation() != sender.incarnation()) {
    steps_.Withdraw(worker, now);
    // Its former start learns that it was replaced when it asks again.
    watches_.CutOf(KeyOf(sender));
    job_.Say(absl::StrCat(TaskName(sender), " was started anew: incarnation ",
                          absl::Hex(sender.incarnation()), " replaces ",
                          absl::Hex(worker.sender.incarnation())));
  }
  worker.Admit(sender, has_finished);
  return worker;
}

absl::StatusOr<AssignTaskReply> Coordinator::AssignTask(
    const AssignTaskRequest& request, absl::Time now) {
  RETURN_IF_ERROR(Admission::CheckAsksForTask(request, job_.options().cluster));
  AssignTaskReply reply;
  if (phase() == STOPPING || (phase() == DONE && !job_.options().may_go_on)) {
    reply.set_job_end(job_.DescribeEnd());
    end_.listeners().OnTold(request.incarnation());
    return reply;
  }
  ASSIGN_OR_RETURN(const int32_t index,
                   numbers_.Assign(request.incarnation(), job_.members(), now));
  job_.versions().RaiseForMember(/*matters_to_workers=*/false, now);
  reply.set_index(index);
  return reply;
}

absl::StatusOr<RegisterReply> Coordinator::Register(
    const RegisterRequest& request, absl::Time now) {
  Members& members = job_.members();
  // A job that is over agrees about nothing.
  if (phase() == DONE) data_.Clear();
  RETURN_IF_ERROR(admission_.Check(request, members));
  numbers_.HearOf(request.highest_index());
  RETURN_IF_ERROR(guard_.Check(request, now));
  const std::string end = phase() == DONE ? job_.DescribeEnd() : "";
  const bool is_chief = admission_.IsChief(request);
  RETURN_IF_ERROR(data_.CheckWorkers(request, is_chief, members));
  RETURN_IF_ERROR(admission_.CheckTraining(request, members, end));
  RETURN_IF_ERROR(data_.Check(request, is_chief, members));
  RETURN_IF_ERROR(data_.CheckModel(request, is_chief));
  if (phase() == DONE) end_.listeners().OnTold(KeyOf(request.sender()));
  const TaskKey key = KeyOf(request.sender());
  RegisterReply reply;
  reply.set_takeover(Admission::WantedTakeover(request, members));
  if (reply.takeover() != 0 || request.asks_only()) {
    *reply.mutable_state() = StateFor(key);
    return reply;
  }
  if (request.goes_on() && phase() == DONE && job_.options().may_go_on) {
    Reopen();
  }
  const Sender sender = SenderOf(key, request.sender().incarnation());
  const bool has_other_training = admission_.AdoptTraining(request);
  const bool has_other_data = phase() != DONE && data_.Adopt(request, is_chief);
  if (has_other_training || has_other_data) {
    ExpelAllBut(key, now);
    job_.RaiseVersion();
  }
  for (std::string& line : data_.TakeLines()) job_.Say(std::move(line));

  CoordinatorWorker& worker = AdmitSender(sender, now);
  worker.may_be_chief = is_chief;
  Hear(worker, now);
  if (worker.may_be_chief &&
      (job_.LiveChief() == nullptr || KeyOf(job_.chief()) == key)) {
    if (!SameProcess(job_.chief(), sender)) saves_.OnNewChief(now);
    job_.GiveLease(sender);
  }
  TellOf(worker, now);
  saves_.CheckPause(now);

  *reply.mutable_state() = StateFor(key);
  return reply;
}

// ---- Watch ----------------------------------------------------------------

// Known here by a late message alone, it would take no state of this ps for
// newer than that of the one before.
absl::Status Coordinator::CheckWatched(const WatchRequest& request) const {
  if (request.state_version() <= state_version()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "watch from ", TaskName(request.sender()), ": version ",
      request.state_version(), " is of another start of ps task 0; register"));
}

absl::Status Coordinator::Watch(const WatchRequest& request, uint64_t watch_id,
                                absl::Time now) {
  // A ps that waits for the end is not a member.
  if (IsTrainingJob(request.sender().task().job())) {
    ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                     FindSender("watch", request.sender(), now));
    RETURN_IF_ERROR(CheckWatched(request));
    worker->watched_version =
        std::max(worker->watched_version, request.state_version());
  }
  RETURN_IF_ERROR(watches_.CheckRoom(request));
  // Task 0, which watches itself for a save, need not be told.
  if (request.sender().task().job() == "ps" &&
      request.sender().task().index() != 0) {
    end_.listeners().OnWatch(request.sender(), request.state_version(),
                             state_version(), now);
  }
  // A member that only waits is heard of by its watches.
  const CoordinatorOptions& options = job_.options();
  const absl::Duration wait = std::clamp(
      absl::Milliseconds(request.max_wait_ms()), absl::ZeroDuration(),
      std::min(options.max_watch, options.worker_timeout / 2));
  const TaskKey asker = KeyOf(request.sender());
  watches_.Add({watch_id, asker, WatchesAll(asker), request.state_version(),
                now + wait});
  return absl::OkStatus();
}

std::vector<WatchAnswer> Coordinator::TakeAnswers(absl::Time now) {
  std::vector<WatchAnswer> answers;
  for (const Watches::Waiting& watch :
       watches_.PopAnswered(job_.versions(), now)) {
    answers.push_back({watch.watch_id, StateFor(watch.asker)});
  }
  return answers;
}

// ---- Time -----------------------------------------------------------------

absl::Time Coordinator::NextDeadline() const {
  const absl::Time save =
      phase() == RUNNING ? saves_.NextDeadline() : absl::InfiniteFuture();
  return std::min(
      {save, watches_.NextDeadline(), steps_.NextDeadline(),
       end_.NextDeadline(), job_.versions().NextDeadline(),
       job_.members().OldestWord() + job_.options().worker_timeout});
}

void Coordinator::Tick(absl::Time now) {
  for (auto& [key, worker] : job_.members()) {
    if (now < worker.last_heard + job_.options().worker_timeout) continue;
    if (!worker.IsWaitedFor()) continue;
    worker.awaited = false;
    if (!worker.IsThere()) {
      TellOf(worker, now);
      continue;
    }
    job_.Say(absl::StrCat("lost ", TaskName(worker.sender),
                          ": not heard of for ",
                          absl::ToInt64Seconds(now - worker.last_heard), " s"));
    worker.state = MemberState::kLost;
    TellOf(worker, now);
    steps_.ReturnGrant(worker, LeaveReason::kIsLost, now);
  }
  job_.versions().Tick(now);
  steps_.Tick(now);
  profiles_.Tick(now);
  end_.Check(now);
  CheckSave(now);
  saves_.CheckPause(now);
  end_.Tick(now);
}

// ---- The epoch ------------------------------------------------------------

absl::StatusOr<BeginEpochReply> Coordinator::BeginEpoch(
    const BeginEpochRequest& request, absl::Time now) {
  Tick(now);
  ASSIGN_OR_RETURN(const CoordinatorWorker* const sender,
                   FindSender("begin epoch", request.sender(), now));
  if (!sender->may_be_chief) {
    return absl::InvalidArgumentError(
        absl::StrCat("begin epoch: ", TaskName(request.sender()),
                     " is not the chief of this cluster"));
  }
  if (phase() == DONE) {
    // A message that comes late: who goes on registers so first.
    return absl::AbortedError(absl::StrCat("begin epoch: the job is done (",
                                           job_.stop_reason(),
                                           "); register again"));
  }
  ModelEpoch& epoch = job_.epoch();
  RETURN_IF_ERROR(epoch.CheckSeen(request.seen_epoch()));
  const CoordinatorWorker* const holder = job_.LiveChief();
  if (holder != nullptr && !SameProcess(holder->sender, request.sender())) {
    return absl::AbortedError(absl::StrCat(
        "begin epoch: ", TaskName(job_.chief()), " incarnation ",
        absl::Hex(job_.chief().incarnation()), " is the chief and is alive"));
  }
  job_.GiveLease(sender->sender);
  epoch.Begin(request.seen_epoch());
  job_.ClearStop();
  job_.budget().Clear();
  steps_.Clear();
  saves_.Clear();
  steps_.ForgetUnreported();
  job_.members().Rejoin();
  job_.SetPhase(INITIAL);
  for (auto& [key, worker] : job_.members()) steps_.AnswerOlder(key);
  BeginEpochReply reply;
  reply.set_model_epoch(epoch.announced());
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<CommitEpochReply> Coordinator::CommitEpoch(
    const CommitEpochRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("commit epoch", request.sender(), now));
  CommitEpochReply reply;
  ModelEpoch& epoch = job_.epoch();
  const int64_t number = request.model_epoch();
  if (request.resumes() && phase() == INITIAL && epoch.IsRepeat(request)) {
    return Resume(request, now);
  }
  if (epoch.IsRepeat(request)) {
    RETURN_IF_ERROR(end_.ChangeStop(request, now));
    *reply.mutable_state() = State();
    return reply;
  }
  if (number != epoch.announced() || phase() != INITIAL || number == 0) {
    return absl::AbortedError(
        absl::StrCat("commit epoch ", number, ": the epoch that was begun is ",
                     epoch.announced(), " and the job is ",
                     JobPhase_Name(phase()), "; begin again"));
  }
  if (request.resumes()) {
    return absl::AbortedError(
        absl::StrCat("commit epoch ", number,
                     ": it is not the one of a job that goes on; "
                     "begin again"));
  }
  RETURN_IF_ERROR(CheckRestored(request));
  RETURN_IF_ERROR(StartSteps(request, now));
  job_.evaluations().Restore(request.evaluations());
  epoch.Commit(request);
  data_.KeepForModel();
  // They are there, though their first Watch may be lost.
  for (const auto& [task, incarnation] : epoch.ps_incarnations()) {
    if (task != 0) end_.listeners().Expect({kPsJob, task}, incarnation, now);
  }
  job_.members().Restore(request);
  numbers_.OnCommit(request.global_step() > 0, now);
  job_.SetPhase(RUNNING);
  end_.Check(now);
  if (phase() == RUNNING && !request.reached().empty()) {
    job_.Stop(EscapeForLog(request.reached(), kMaxReasonChars));
  }
  *reply.mutable_state() = State();
  return reply;
}

absl::Status Coordinator::StartSteps(const CommitEpochRequest& commit,
                                     absl::Time now) {
  RETURN_IF_ERROR(saves_.Start(commit, now));
  end_.SetStop(commit.stop());
  return steps_.Start(commit, now);
}

void Coordinator::Reopen() {
  for (auto& [key, worker] : job_.members()) worker.Expel();
  job_.ClearStop();
  steps_.Clear();
  saves_.Clear();
  end_.Reopen();
  steering_.Clear();
  profiles_.Clear();
  job_.SetPhase(INITIAL);
  job_.Say(absl::StrCat("the job goes on from step ", job_.budget().steps(),
                        ", which the ps tasks hold"));
}

absl::StatusOr<CommitEpochReply> Coordinator::Resume(
    const CommitEpochRequest& request, absl::Time now) {
  Members& members = job_.members();
  CommitEpochRequest commit = request;
  commit.set_global_step(job_.budget().steps());
  commit.set_examples(job_.budget().examples());
  commit.clear_workers();
  for (const auto& [key, worker] : members) {
    *commit.add_workers() = worker.State();
  }
  RETURN_IF_ERROR(StartSteps(commit, now));
  members.Restore(commit);
  job_.SetPhase(RUNNING);
  end_.Check(now);
  CommitEpochReply reply;
  *reply.mutable_state() = State();
  return reply;
}

// ---- Steps and their end ----------------------------------------------------

absl::Status Coordinator::Step(const StepRequest& request, uint64_t step_id,
                               absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   FindSender("step", request.sender(), now));
  RETURN_IF_ERROR(CheckStepNumbers(request));
  RETURN_IF_ERROR(CheckMayStop(request, job_.chief()));
  // A job that goes on is INITIAL in its epoch.
  const ModelEpoch& epoch = job_.epoch();
  const bool is_current =
      epoch.committed() != 0 && phase() != INITIAL &&
      epoch.IsCurrent(request.model_epoch(), request.ps_incarnation());
  if (is_current) RETURN_IF_ERROR(steps_.Report(*worker, request, now));
  worker->is_done = request.is_done();
  if (worker->is_done) {
    steps_.ReturnGrant(*worker, LeaveReason::kFinishes, now);
  }
  if (is_current && SameProcess(job_.chief(), request.sender())) {
    job_.evaluations().Adopt(request.evaluations());
  }
  if (is_current && phase() == RUNNING && !request.stop_reason().empty()) {
    job_.Stop(EscapeForLog(request.stop_reason(), kMaxReasonChars));
  }
  steps_.CheckRounds(now);
  end_.Check(now);
  CheckSave(now);
  // A worker that gave a step up asks for the next in a call of its own.
  const bool asks = is_current && !request.abandoned() && phase() == RUNNING &&
                    worker->TakesSteps();
  steps_.Answer(*worker, request, step_id, asks, now);
  return absl::OkStatus();
}

absl::StatusOr<FinishReply> Coordinator::Finish(const FinishRequest& request,
                                                absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   FindSender("finish", request.sender(), now));
  RETURN_IF_ERROR(CheckMayFinish(request, job_.chief()));
  FinishReply reply;
  if (request.stays() && (phase() != STOPPING ||
                          !job_.epoch().IsCurrent(request.model_epoch(),
                                                  request.ps_incarnation()))) {
    *reply.mutable_state() = StateFor(KeyOf(request.sender()));
    return reply;
  }
  steps_.ReturnGrant(*worker, LeaveReason::kFinishes, now);
  worker->traffic = request.traffic();
  if (worker->IsActive()) {
    worker->state =
        request.stays() ? MemberState::kStaying : MemberState::kFinished;
    worker->unsaved = worker->awaited = request.unsaved();
    TellOf(*worker, now);
  } else if (!request.stays()) {
    worker->state = MemberState::kFinished;
  }
  if (request.stop_job() && (phase() == RUNNING || phase() == INITIAL)) {
    job_.Stop(absl::StrCat(EscapeForLog(request.reason(), kMaxReasonChars),
                           " (", TaskName(request.sender()), ")"));
  }
  if (phase() == STOPPING && !request.stays() && !request.unsaved() &&
      KeyOf(request.sender()) == KeyOf(job_.chief())) {
    saves_.OnLastSave();
  }
  steps_.CheckRounds(now);
  end_.Check(now);
  *reply.mutable_state() = StateFor(KeyOf(request.sender()));
  return reply;
}

// ---- Snapshots and saves --------------------------------------------------

absl::StatusOr<PauseRoundsReply> Coordinator::PauseRounds(
    const PauseRoundsRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("hold rounds", request.sender(), now));
  RETURN_IF_ERROR(
      job_.epoch().CheckCommitted("hold rounds", request.model_epoch()));
  RETURN_IF_ERROR(steps_.PauseRounds(request, now));
  if (!request.pause()) {
    end_.Check(now);
    CheckSave(now);
  }
  PauseRoundsReply reply;
  *reply.mutable_token() = steps_.round_token();
  *reply.mutable_state() = State();
  *reply.mutable_ledger() = job_.leases().Ledger();
  return reply;
}

absl::StatusOr<BeginCutReply> Coordinator::BeginCut(
    const BeginCutRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("begin cut", request.sender(), now));
  RETURN_IF_ERROR(
      job_.epoch().CheckCommitted("begin cut", request.model_epoch()));
  RETURN_IF_ERROR(steps_.BeginCut(request, now));
  BeginCutReply reply;
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<ConfirmCutReply> Coordinator::ConfirmCut(
    const ConfirmCutRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("confirm cut", request.sender(), now));
  RETURN_IF_ERROR(
      job_.epoch().CheckCommitted("confirm cut", request.model_epoch()));
  return steps_.ConfirmCut(request);
}

absl::StatusOr<RequestSaveReply> Coordinator::RequestSave(
    const RequestSaveRequest& request, absl::Time now) {
  const Sender& ps = request.sender();
  if (ps.task().job() != "ps") {
    return absl::InvalidArgumentError(
        absl::StrCat("request save: ", TaskName(ps),
                     " is not a ps task; only a ps that stops asks"));
  }
  if (request.leaving()) end_.listeners().Leave(ps);
  RequestSaveReply reply = saves_.Ask(request, now);
  if (reply.save_request() != 0) CheckSave(now);
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<ReportSaveReply> Coordinator::ReportSave(
    const ReportSaveRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("report save", request.sender(), now));
  saves_.Report(request, now);
  return ReportSaveReply();
}

}  // namespace muster
