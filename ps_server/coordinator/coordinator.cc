#include "ps_server/coordinator/coordinator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/config/namespace_name.h"
#include "ps_server/coordinator/awaited_workers.h"

namespace muster {
namespace {

// The longest texts kept of an error of the chief, and of its reason to stop.
constexpr size_t kMaxErrorChars = 400;
constexpr size_t kMaxReasonChars = 200;
// A chief that is there is heard of at least every 5 s, by its Watch.
constexpr absl::Duration kChiefSilence = absl::Seconds(10);

bool SameProcess(const Sender& a, const Sender& b) {
  return KeyOf(a) == KeyOf(b) && a.incarnation() == b.incarnation();
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)),
      admission_(options_.cluster, options_.max_unlisted_tasks),
      listeners_(options_.worker_timeout),
      attendance_(TrainingTasks(options_.cluster)),
      gate_(StepGate::Free(GatedJob())) {}

StepGate::Job Coordinator::GatedJob() {
  return {&budget_, [this] { return members_.Active(); }, attendance_.listed()};
}

void Coordinator::Hear(CoordinatorWorker& worker, absl::Time now) {
  worker.last_heard = std::max(worker.last_heard, now);
  if (phase_ == DONE) listeners_.OnTold(KeyOf(worker.sender));
  if (worker.state != MemberState::kLost) return;
  worker.state = MemberState::kActive;
  ++state_version_;
  Say(absl::StrCat(TaskName(worker.sender), " is back"));
}

absl::StatusOr<CoordinatorWorker*> Coordinator::FindSender(
    absl::string_view request, const Sender& sender, absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   members_.FindSender(request, sender));
  Hear(*worker, now);
  return worker;
}

// All others hear of the difference when they register again.
void Coordinator::ExpelAllBut(const TaskKey& key, absl::Time now) {
  for (auto& [other, worker] : members_) {
    if (other == key || !worker.registered) continue;
    Say(absl::StrCat(TaskName(other),
                     " came with another training, or other data, than ",
                     TaskName(key), ": it has to register again"));
    Withdraw(worker, now);
    worker.Expel();
  }
}

void Coordinator::Withdraw(CoordinatorWorker& worker, absl::Time now) {
  const TaskKey key = KeyOf(worker.sender);
  ReturnGrant(worker, now);
  gate_->Forget(key);
  AnswerOlderStep(key);
}

CoordinatorWorker& Coordinator::AdmitSender(const Sender& sender,
                                            absl::Time now) {
  CoordinatorWorker& worker = members_.FindOrAdd(KeyOf(sender));
  // Who comes back to a job that is done has finished if its task had, and has
  // left nothing to do.
  const bool has_finished =
      phase_ == DONE && worker.HasFinished() && !worker.unsaved;
  // A task that is known from a manifest alone has no process yet.
  if (worker.sender.incarnation() != 0 &&
      worker.sender.incarnation() != sender.incarnation()) {
    Withdraw(worker, now);
    Say(absl::StrCat(TaskName(sender), " was started anew: incarnation ",
                     absl::Hex(sender.incarnation()), " replaces ",
                     absl::Hex(worker.sender.incarnation())));
  }
  worker.Admit(sender, has_finished);
  return worker;
}

absl::StatusOr<RegisterReply> Coordinator::Register(
    const RegisterRequest& request, absl::Time now) {
  RETURN_IF_ERROR(admission_.Check(request, members_));
  RETURN_IF_ERROR(CheckGuarded(request, now));
  const std::string end =
      phase_ != DONE
          ? ""
          : absl::StrCat(stop_reason_, ", at step ", budget_.steps());
  const bool is_chief = admission_.IsChief(request);
  RETURN_IF_ERROR(data_.CheckWorkers(request, is_chief, members_));
  RETURN_IF_ERROR(admission_.CheckTraining(request, members_, end));
  RETURN_IF_ERROR(data_.Check(request, is_chief, members_));
  if (phase_ == DONE) listeners_.OnTold(KeyOf(request.sender()));
  RegisterReply reply;
  reply.set_takeover(Admission::WantedTakeover(request, members_));
  if (reply.takeover() != 0 || request.asks_only()) {
    *reply.mutable_state() = State();
    return reply;
  }
  if (request.goes_on() && phase_ == DONE && options_.may_go_on) Reopen();
  const TaskKey key = KeyOf(request.sender());
  const Sender sender = SenderOf(key, request.sender().incarnation());
  const bool has_other_training = admission_.AdoptTraining(request);
  const bool has_other_data = phase_ != DONE && data_.Adopt(request, is_chief);
  if (has_other_training || has_other_data) ExpelAllBut(key, now);
  for (std::string& line : data_.TakeLines()) Say(std::move(line));

  CoordinatorWorker& worker = AdmitSender(sender, now);
  worker.may_be_chief = is_chief;
  Hear(worker, now);
  if (worker.may_be_chief && (LiveChief() == nullptr || KeyOf(chief_) == key)) {
    if (!SameProcess(chief_, sender)) unsaved_.OnOverdue("", now);
    chief_ = sender;
  }
  ++state_version_;
  CheckPause(now);

  *reply.mutable_position() = worker.position;
  *reply.mutable_state() = State();
  return reply;
}

absl::Status Coordinator::CheckGuarded(const RegisterRequest& request,
                                       absl::Time now) {
  const TaskKey key = KeyOf(request.sender());
  const uint64_t asker = request.sender().incarnation();
  const CoordinatorWorker* const known = members_.Find(key);
  if (!options_.guards_tasks || known == nullptr || !known->IsThere() ||
      known->sender.incarnation() == asker) {
    return absl::OkStatus();
  }
  std::string why = admission_.DifferenceTo(request);
  if (!why.empty() && now < known->last_heard + kChiefSilence) {
    why = absl::StrCat("and its training differs: ", why);
  } else {
    const absl::Status replaceable = CheckReplaceable(*known, asker, now);
    if (!absl::IsInvalidArgument(replaceable)) return replaceable;
    why = std::string(replaceable.message());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "register ", TaskName(key), ": another job has ",
      QuotedNamespace(request.sender().namespace_()), ", whose ", TaskName(key),
      " trains, ", why, "; give this job another --namespace"));
}

absl::Status Coordinator::CheckReplaceable(const CoordinatorWorker& holder,
                                           uint64_t asker, absl::Time now) {
  if (questions_.Find(asker) == nullptr) {
    state_version_ += TakeoverQuestions::VersionsOf(asker);
    questions_.Ask({asker, state_version_, now});
  }
  const TakeoverQuestions::Question& question = *questions_.Find(asker);
  if (holder.watched_version >= question.version) {
    return absl::InvalidArgumentError(
        absl::StrCat("and is alive (incarnation ",
                     absl::Hex(holder.sender.incarnation()), ")"));
  }
  if (now >= question.since + TakeoverQuestions::kAnswerTime) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("register ", TaskName(holder.sender),
                   ": another start of it is asked whether it is alive"));
}

void Coordinator::Reopen() {
  for (auto& [key, worker] : members_) worker.Expel();
  stop_reason_.clear();
  gate_ = StepGate::Free(GatedJob());
  saves_.Clear();
  unsaved_.Clear();
  listeners_.Reopen();
  chief_gone_since_ = idle_since_ = absl::InfiniteFuture();
  SetPhase(INITIAL);
  Say(absl::StrCat("the job goes on from step ", budget_.steps(),
                   ", which the ps tasks hold"));
}

// Known here by a late message alone, it would take no state of this ps for
// newer than that of the one before.
absl::Status Coordinator::CheckWatched(const WatchRequest& request) const {
  if (request.state_version() <= state_version_) return absl::OkStatus();
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
  if (watches_.size() >= kMaxWatches) {
    return absl::ResourceExhaustedError(
        absl::StrCat("watch from ", TaskName(request.sender()), ": ",
                     kMaxWatches, " callers wait already; ask again later"));
  }
  // Task 0, which watches itself for a save, need not be told.
  if (request.sender().task().job() == "ps" &&
      request.sender().task().index() != 0) {
    listeners_.OnWatch(request.sender(), request.state_version(),
                       state_version_, now);
  }
  // A member that only waits is heard of by its watches.
  const absl::Duration wait = std::clamp(
      absl::Milliseconds(request.max_wait_ms()), absl::ZeroDuration(),
      std::min(options_.max_watch, options_.worker_timeout / 2));
  watches_.push_back({watch_id, request.state_version(), now + wait});
  return absl::OkStatus();
}

std::vector<WatchAnswer> Coordinator::TakeAnswers(absl::Time now) {
  const auto ends = [this, now](const WaitingWatch& watch) {
    return watch.state_version != state_version_ || watch.until <= now;
  };
  std::vector<WatchAnswer> answers;
  for (const WaitingWatch& watch : watches_) {
    if (ends(watch)) answers.push_back({watch.watch_id, State()});
  }
  watches_.erase(std::remove_if(watches_.begin(), watches_.end(), ends),
                 watches_.end());
  return answers;
}

void Coordinator::Say(std::string line) {
  if (lines_.size() < kMaxLines) lines_.push_back(std::move(line));
}

std::vector<std::string> Coordinator::TakeLines() {
  return std::exchange(lines_, {});
}

void Coordinator::CutWatch(uint64_t watch_id) {
  for (WaitingWatch& watch : watches_) {
    if (watch.watch_id == watch_id) watch.until = absl::InfinitePast();
  }
}

absl::Time Coordinator::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  if (phase_ == STOPPING) deadline = idle_since_ + options_.latecomer_wait;
  // Otherwise the end waits for a step, too.
  if (!members_.IsAnyActive())
    deadline = std::min(deadline, LastSaveDeadline());
  for (const WaitingWatch& watch : watches_) {
    deadline = std::min(deadline, watch.until);
  }
  for (const WaitingStep& step : waiting_steps_) {
    deadline = std::min(deadline, step.until);
  }
  if (phase_ == RUNNING) {
    deadline =
        std::min({deadline, saves_.NextDeadline(), attendance_.assembled_at()});
  }
  return std::min({deadline, gate_->NextDeadline(), listeners_.NextDeadline(),
                   AbsenceDeadline(),
                   members_.OldestWord() + options_.worker_timeout});
}

void Coordinator::Tick(absl::Time now) {
  if (others_heard_ == absl::InfinitePast()) others_heard_ = now;
  for (auto& [key, worker] : members_) {
    if (now < worker.last_heard + options_.worker_timeout) continue;
    if (!worker.IsWaitedFor()) continue;
    worker.awaited = false;
    ++state_version_;
    if (!worker.IsThere()) continue;
    Say(absl::StrCat("lost ", TaskName(worker.sender), ": not heard of for ",
                     absl::ToInt64Seconds(now - worker.last_heard), " s"));
    worker.state = MemberState::kLost;
    ReturnGrant(worker, now);
  }
  gate_->SeeLive(now);
  SayAttendance(now);
  CheckRounds(now);
  CheckEnd(now);
  CheckSave(now);
  CheckPause(now);
  listeners_.Tick(now);
  if (now >= AbsenceDeadline()) Abandon();
}

absl::Time Coordinator::AbsenceDeadline() const {
  const bool is_absent = options_.ends_without_workers && abandoned_.empty() &&
                         (phase_ == INITIAL || phase_ == RUNNING) &&
                         !members_.IsAnyWaitedFor();
  if (!is_absent) return absl::InfiniteFuture();
  return std::max(others_heard_, members_.LastWord()) + options_.max_wait;
}

void Coordinator::Abandon() {
  abandoned_ =
      absl::StrCat("nobody has trained here for ",
                   absl::FormatDuration(options_.max_wait), " (--max_wait)");
  if (unsaved_.awaits_last_save()) {
    absl::StrAppend(&abandoned_, "; lost are ",
                    unsaved_.Describe(budget_.steps()));
  }
  absl::StrAppend(&abandoned_,
                  "; start the ps tasks and the workers again, or give the ps "
                  "tasks a longer --max_wait or --keep_serving");
  ++state_version_;
}

const CoordinatorWorker* Coordinator::LiveChief() const {
  const CoordinatorWorker* const holder = members_.Find(KeyOf(chief_));
  const bool is_live = chief_.incarnation() != 0 && holder != nullptr &&
                       SameProcess(holder->sender, chief_) &&
                       holder->IsActive();
  return is_live ? holder : nullptr;
}

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
  if (phase_ == DONE) {
    // A message that comes late: who goes on registers so first.
    return absl::AbortedError(absl::StrCat("begin epoch: the job is done (",
                                           stop_reason_, "); register again"));
  }
  RETURN_IF_ERROR(epoch_.CheckSeen(request.seen_epoch()));
  const CoordinatorWorker* const holder = LiveChief();
  if (holder != nullptr && !SameProcess(holder->sender, request.sender())) {
    return absl::AbortedError(absl::StrCat(
        "begin epoch: ", TaskName(chief_), " incarnation ",
        absl::Hex(chief_.incarnation()), " is the chief and is alive"));
  }
  chief_ = sender->sender;
  epoch_.Begin(request.seen_epoch());
  stop_reason_.clear();
  budget_.Clear();
  gate_ = StepGate::Free(GatedJob());
  saves_.Clear();
  unsaved_.Clear();
  unreported_.Clear();
  members_.Rejoin();
  SetPhase(INITIAL);
  for (auto& [key, worker] : members_) AnswerOlderStep(key);
  BeginEpochReply reply;
  reply.set_model_epoch(epoch_.announced());
  *reply.mutable_state() = State();
  return reply;
}

absl::Status Coordinator::CheckLease(absl::string_view request,
                                     const Sender& sender, absl::Time now) {
  RETURN_IF_ERROR(FindSender(request, sender, now).status());
  if (SameProcess(chief_, sender)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      request, ": ", TaskName(sender), " incarnation ",
      absl::Hex(sender.incarnation()), " has lost the chief lease"));
}

absl::StatusOr<CommitEpochReply> Coordinator::CommitEpoch(
    const CommitEpochRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("commit epoch", request.sender(), now));
  CommitEpochReply reply;
  const int64_t epoch = request.model_epoch();
  if (request.resumes() && phase_ == INITIAL && epoch_.IsRepeat(request)) {
    return Resume(request, now);
  }
  if (epoch_.IsRepeat(request)) {
    *reply.mutable_state() = State();
    return reply;
  }
  if (epoch != epoch_.announced() || phase_ != INITIAL || epoch == 0) {
    return absl::AbortedError(
        absl::StrCat("commit epoch ", epoch, ": the epoch that was begun is ",
                     epoch_.announced(), " and the job is ",
                     JobPhase_Name(phase_), "; begin again"));
  }
  if (request.resumes()) {
    return absl::AbortedError(
        absl::StrCat("commit epoch ", epoch,
                     ": it is not the one of a job that goes on; "
                     "begin again"));
  }
  RETURN_IF_ERROR(CheckRestored(request));
  RETURN_IF_ERROR(StartSteps(request, now));
  epoch_.Commit(request);
  // They are there, though their first Watch may be lost.
  for (const auto& [task, incarnation] : epoch_.ps_incarnations()) {
    if (task != 0) listeners_.Expect({kPsJob, task}, incarnation, now);
  }
  members_.Restore(request);
  SetPhase(RUNNING);
  CheckEnd(now);
  if (phase_ == RUNNING && !request.reached().empty()) {
    Stop(EscapeForLog(request.reached(), kMaxReasonChars));
  }
  *reply.mutable_state() = State();
  return reply;
}

absl::Status Coordinator::StartSteps(const CommitEpochRequest& commit,
                                     absl::Time now) {
  RETURN_IF_ERROR(unsaved_.Start(commit, now));
  attendance_.Start(commit, now + options_.worker_timeout);
  stop_ = commit.stop();
  ASSIGN_OR_RETURN(gate_,
                   StepGate::Create(commit, GatedJob(), members_.Registered(),
                                    now + options_.worker_timeout));
  return absl::OkStatus();
}

absl::StatusOr<CommitEpochReply> Coordinator::Resume(
    const CommitEpochRequest& request, absl::Time now) {
  CommitEpochRequest commit = request;
  commit.set_global_step(budget_.steps());
  commit.set_examples(budget_.examples());
  *commit.mutable_start_position() = members_.start_position();
  commit.clear_workers();
  for (const auto& [key, worker] : members_) {
    *commit.add_workers() = worker.State();
  }
  RETURN_IF_ERROR(StartSteps(commit, now));
  members_.Restore(commit);
  SetPhase(RUNNING);
  CheckEnd(now);
  CommitEpochReply reply;
  *reply.mutable_state() = State();
  return reply;
}

JobState Coordinator::State() const {
  JobState state;
  state.set_state_version(state_version_);
  state.set_phase(phase_);
  state.set_model_epoch(epoch_.committed());
  state.set_fingerprint(epoch_.fingerprint());
  state.set_global_step(budget_.steps());
  state.set_examples(budget_.examples());
  if (chief_.incarnation() != 0) *state.mutable_chief() = chief_;
  for (const auto& [key, worker] : members_) {
    *state.add_workers() = worker.State();
  }
  state.set_stop_reason(stop_reason_);
  state.mutable_ps_incarnations()->insert(epoch_.ps_incarnations().begin(),
                                          epoch_.ps_incarnations().end());
  state.set_save_requests(saves_.raised());
  state.set_saves_answered(saves_.answered());
  state.set_save_error(saves_.error());
  state.set_unsaved((phase_ == STOPPING || phase_ == DONE) &&
                    unsaved_.awaits_last_save());
  state.mutable_staleness_counts()->Add(members_.staleness_counts().begin(),
                                        members_.staleness_counts().end());
  const StepRounds* const rounds = gate_->rounds();
  if (rounds != nullptr && rounds->is_open()) state.set_round(rounds->round());
  state.set_may_go_on(phase_ == DONE && options_.may_go_on);
  state.set_abandoned(abandoned_);
  *state.mutable_stop() = stop_;
  if (attendance_.update().workers() > 0) {
    *state.mutable_update() = attendance_.update();
  }
  return state;
}

std::vector<uint64_t> Coordinator::Incarnations() const {
  std::vector<uint64_t> incarnations;
  for (const auto& [key, worker] : members_) {
    if (worker.registered) incarnations.push_back(worker.sender.incarnation());
  }
  return incarnations;
}

std::vector<TaskKey> Coordinator::ActiveTasks() const {
  const std::set<TaskKey> active = members_.Active();
  return {active.begin(), active.end()};
}

absl::Status Coordinator::Step(const StepRequest& request, uint64_t step_id,
                               absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   FindSender("step", request.sender(), now));
  RETURN_IF_ERROR(CheckStepNumbers(request, budget_.batch_size()));
  RETURN_IF_ERROR(CheckMayStop(request, chief_));
  // A job that goes on is INITIAL in its epoch.
  const bool is_current =
      epoch_.committed() != 0 && phase_ != INITIAL &&
      epoch_.IsCurrent(request.model_epoch(), request.ps_incarnation());
  if (is_current && request.step() > worker->reported_step) {
    RETURN_IF_ERROR(gate_->CheckReport(request));
    if (!request.abandoned()) {
      worker->reported_step = request.step();
      Count(gate_->Report(request, now), now);
    } else if (request.step() > worker->abandoned_step) {
      worker->abandoned_step = request.step();
      ReturnGrant(*worker, now);
    }
  }
  if (is_current && phase_ == RUNNING && !request.stop_reason().empty()) {
    Stop(EscapeForLog(request.stop_reason(), kMaxReasonChars));
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
  if (asks && !granted) ExplainWait(task).AddTo(reply);
  step_answers_.push_back({step_id, std::move(reply)});
}

void Coordinator::ReturnGrant(CoordinatorWorker& worker, absl::Time now) {
  const std::optional<StepRequest> unreported = unreported_.Pop(worker);
  if (unreported.has_value()) {
    worker.reported_step = unreported->step();
    return Count(gate_->Report(*unreported, now), now);
  }
  if (!gate_->Leave(KeyOf(worker.sender))) return;
  if (members_.DoesAnyWaitForGrant()) ++state_version_;
}

absl::StatusOr<FinishReply> Coordinator::Finish(const FinishRequest& request,
                                                absl::Time now) {
  ASSIGN_OR_RETURN(CoordinatorWorker* const worker,
                   FindSender("finish", request.sender(), now));
  RETURN_IF_ERROR(CheckMayFinish(request, chief_));
  FinishReply reply;
  if (request.stays() &&
      (phase_ != STOPPING ||
       !epoch_.IsCurrent(request.model_epoch(), request.ps_incarnation()))) {
    *reply.mutable_state() = State();
    return reply;
  }
  ReturnGrant(*worker, now);
  worker->traffic = request.traffic();
  if (worker->IsActive()) {
    worker->state =
        request.stays() ? MemberState::kStaying : MemberState::kFinished;
    worker->unsaved = worker->awaited = request.unsaved();
    ++state_version_;
  } else if (!request.stays()) {
    worker->state = MemberState::kFinished;
  }
  if (request.stop_job() && (phase_ == RUNNING || phase_ == INITIAL)) {
    Stop(absl::StrCat(EscapeForLog(request.reason(), kMaxReasonChars), " (",
                      TaskName(request.sender()), ")"));
  }
  if (phase_ == STOPPING && !request.stays() && !request.unsaved() &&
      KeyOf(request.sender()) == KeyOf(chief_)) {
    unsaved_.OnLastSave();
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
  return members_.Registered().size() >=
         static_cast<size_t>(std::max(0, options_.expected_tasks));
}

void Coordinator::CheckEnd(absl::Time now) {
  if (phase_ == RUNNING) {
    std::string limit = budget_.ReachedLimit();
    if (!limit.empty()) Stop(std::move(limit));
  }
  if (GivesUpLastSave(now)) return End(now);
  const bool is_waited_for =
      unsaved_.awaits_last_save() || members_.IsAnyWaitedFor();
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
  data_.Clear();
  gate_->End();
  std::vector<TaskKey> lost;
  for (const auto& [key, worker] : members_) {
    if (!worker.registered || worker.state != MemberState::kLost) continue;
    lost.push_back(key);
    listeners_.Expect(key, worker.sender.incarnation(), now);
  }
  listeners_.OnEnd(state_version_, now);
  if (lost.empty() || options_.may_go_on) return;
  Say(absl::StrCat("the job is done; staying at most ",
                   absl::FormatDuration(options_.worker_timeout), " for ",
                   TaskNames(lost),
                   ", which may have stood still, to learn of it"));
}

void Coordinator::SayAttendance(absl::Time now) {
  const StepRounds* const rounds = gate_->rounds();
  if (phase_ != RUNNING || (rounds == nullptr && !attendance_.IsDue(now))) {
    return;
  }
  const int64_t gradients =
      rounds == nullptr ? 0 : rounds->GradientsOfUpdate(members_.Active());
  for (std::string& line :
       attendance_.Look(members_.Registered(), gradients, now)) {
    Say(std::move(line));
    ++state_version_;
  }
}

void Coordinator::CheckRounds(absl::Time now) {
  Count(gate_->TryClose(now), now);
}

void Coordinator::Count(const DecidedSteps& steps, absl::Time now) {
  if (steps.chosen.empty() && steps.dropped.empty()) return;
  members_.Count(steps, now);
  // Who knows of the end already has the account without these.
  if (phase_ == STOPPING) ++state_version_;
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
  reply.set_model_epoch(epoch_.committed());
  reply.set_state_version(state_version_);
  if (!granted) return reply;
  *reply.mutable_token() = gate_->TokenFor(KeyOf(worker.sender));
  if (gate_->rounds() != nullptr) {
    reply.mutable_token()->set_chosen_step(worker.chosen_step);
  } else {
    StepCounts& counts = *reply.mutable_token()->mutable_counts();
    counts.set_steps(worker.steps);
    counts.set_examples(worker.examples);
  }
  return reply;
}

StepWait Coordinator::ExplainWait(const TaskKey& task) const {
  if (phase_ != RUNNING) return {};
  if (saves_.pauses_grants()) {
    return {{}, "a ps task that stops to be saved and to leave"};
  }
  if (needs_chief_) {
    return {
        {KeyOf(chief_)},
        absl::StrCat(
            unsaved_.overdue().empty()
                ? "to come back and save the model"
                : absl::StrCat("to end ", unsaved_.overdue()),
            ": ", unsaved_.Describe(budget_.steps() + budget_.outstanding()))};
  }
  return gate_->Explain(task, KeyOf(chief_));
}

void Coordinator::AnswerOlderStep(const TaskKey& task) {
  const auto older = std::find_if(
      waiting_steps_.begin(), waiting_steps_.end(),
      [&task](const WaitingStep& step) { return step.task == task; });
  if (older == waiting_steps_.end()) return;
  StepReply reply = MakeStepReply(members_.FindOrAdd(task), /*granted=*/false);
  ExplainWait(task).AddTo(reply);
  step_answers_.push_back({older->step_id, std::move(reply)});
  waiting_steps_.erase(older);
}

std::vector<StepAnswer> Coordinator::TakeStepAnswers(absl::Time now) {
  if (!waiting_steps_.empty()) gate_->SeeLive(now);
  for (WaitingStep& step : std::exchange(waiting_steps_, {})) {
    CoordinatorWorker& worker = members_.FindOrAdd(step.task);
    const bool granted =
        phase_ == RUNNING && worker.IsActive() && TryGrantTo(step.task, now);
    if (!granted && gate_->MayWait() && step.state_version == state_version_ &&
        now < step.until) {
      waiting_steps_.push_back(std::move(step));
      continue;
    }
    worker.waits_for_grant = !granted;
    StepReply reply = MakeStepReply(worker, granted);
    if (!granted) ExplainWait(step.task).AddTo(reply);
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
  RETURN_IF_ERROR(epoch_.CheckCommitted("hold rounds", request.model_epoch()));
  StepRounds* const rounds = gate_->rounds();
  if (rounds == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("hold rounds from ", TaskName(request.sender()),
                     ": the job's replication has no rounds; a snapshot needs "
                     "no token"));
  }
  if (request.pause()) {
    // After the last grant a save may pause a round that all have delivered,
    // and the next save is the last: it wants that round's update.
    if (phase_ != RUNNING) {
      rounds->Release();
      CheckRounds(now);
    }
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

absl::StatusOr<ConfirmCutReply> Coordinator::ConfirmCut(
    const ConfirmCutRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("confirm cut", request.sender(), now));
  RETURN_IF_ERROR(epoch_.CheckCommitted("confirm cut", request.model_epoch()));
  if (gate_->rounds() != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("confirm cut from ", TaskName(request.sender()),
                     ": the job's replication has rounds, which tell the "
                     "steps of a cut"));
  }
  ConfirmCutReply reply;
  for (const HeldStep& held : request.held()) {
    const CoordinatorWorker* const worker = members_.Find(KeyOf(held.sender()));
    if (worker == nullptr || !SameProcess(worker->sender, held.sender())) {
      *reply.add_replaced() = held.sender();
    } else if (WillCount(*worker, held)) {
      *reply.add_counted() = held;
    }
  }
  return reply;
}

bool Coordinator::WillCount(const CoordinatorWorker& worker,
                            const HeldStep& held) {
  if (held.step() <= worker.reported_step) {
    return held.counts().steps() <= worker.steps &&
           held.counts().examples() <= worker.examples;
  }
  // Its grant may have been returned, and the last ones be in other hands.
  if (!UnreportedSteps::IsNextOf(worker, held, budget_.batch_size()) ||
      !gate_->TryEnter(KeyOf(worker.sender), StepPause::kNone)) {
    return false;
  }
  unreported_.Add(worker, held);
  return true;
}

std::string Coordinator::WhyNoSave(const Sender& ps) const {
  if (phase_ == INITIAL || !epoch_.IsHeldBy(ps)) {
    return "it holds no committed model";
  }
  if (phase_ != DONE && LiveChief() == nullptr) {
    return "no chief is alive that could save";
  }
  return "";
}

absl::StatusOr<RequestSaveReply> Coordinator::RequestSave(
    const RequestSaveRequest& request, absl::Time now) {
  const Sender& ps = request.sender();
  if (ps.task().job() != "ps") {
    return absl::InvalidArgumentError(
        absl::StrCat("request save: ", TaskName(ps),
                     " is not a ps task; only a ps that stops asks"));
  }
  if (request.leaving()) listeners_.Leave(ps);
  RequestSaveReply reply;
  const std::string why_not = WhyNoSave(ps);
  if (!why_not.empty()) {
    reply.set_reason(why_not);
  } else if (request.leaving()) {
    saves_.Leave(ps.task().index());
    if (!saves_.pauses_grants()) ++state_version_;
  } else if (phase_ == RUNNING) {
    reply.set_save_request(saves_.Ask(ps.task().index(), now));
    CheckSave(now);
  } else {
    // The chief saves at the end of the job.
    reply.set_save_request(saves_.next());
  }
  *reply.mutable_state() = State();
  return reply;
}

absl::StatusOr<ReportSaveReply> Coordinator::ReportSave(
    const ReportSaveRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("report save", request.sender(), now));
  if (saves_.Answer(request.save_request(),
                    EscapeForLog(request.error(), kMaxErrorChars))) {
    ++state_version_;
  }
  unsaved_.OnOverdue(EscapeForLog(request.overdue(), kMaxReasonChars), now);
  if (request.error().empty() && request.overdue().empty() &&
      epoch_.CheckCommitted("save", request.model_epoch()).ok() &&
      request.global_step() <= budget_.steps() + budget_.outstanding()) {
    // Some of its steps may not have been reported yet.
    unsaved_.OnSaved(std::min(request.global_step(), budget_.steps()), now);
  }
  CheckPause(now);
  return ReportSaveReply();
}

bool Coordinator::NeedsChief(absl::Time now) const {
  if (phase_ == RUNNING && unsaved_.IsOverdue(now)) return true;
  if (phase_ != RUNNING ||
      !unsaved_.IsSaveDue(budget_.steps() + budget_.outstanding(), now)) {
    return false;
  }
  const CoordinatorWorker* const chief = LiveChief();
  return chief == nullptr ||
         now >= chief->last_heard +
                    std::min(kChiefSilence, options_.worker_timeout);
}

void Coordinator::CheckPause(absl::Time now) {
  if (!unsaved_.IsOverdue(now)) unsaved_.OnOverdue("", now);
  const bool needed = std::exchange(needs_chief_, NeedsChief(now));
  if (needed == needs_chief_) return;
  ++state_version_;
  if (needs_chief_) {
    const std::string& overdue = unsaved_.overdue();
    Say(absl::StrCat(
        "no step is granted until ", TaskName(KeyOf(chief_)),
        overdue.empty() ? " is back to save the model"
                        : absl::StrCat(" has ended ", overdue),
        ": ", unsaved_.Describe(budget_.steps() + budget_.outstanding()),
        overdue.empty() ? "; start it again"
                        : "; look at the disk of its --train_dir"));
  } else if (phase_ == RUNNING) {
    Say("steps are granted again");
  }
}

bool Coordinator::GivesUpLastSave(absl::Time now) {
  if (phase_ != STOPPING || !unsaved_.awaits_last_save() ||
      LiveChief() != nullptr) {
    chief_gone_since_ = absl::InfiniteFuture();
    return false;
  }
  if (chief_gone_since_ == absl::InfiniteFuture()) {
    chief_gone_since_ = now;
    Say(absl::StrCat("the job has reached its end; waiting for ",
                     TaskName(KeyOf(chief_)),
                     " to come back and save the model: ",
                     unsaved_.Describe(budget_.steps()), "; start it again"));
  }
  // Who still has a step under way is waited for in any case.
  if (now < LastSaveDeadline() || members_.IsAnyActive()) return false;
  Say(absl::StrCat(
      "the job ends without its last save, ", TaskName(KeyOf(chief_)),
      " did not come back: ", unsaved_.Describe(budget_.steps()), " are lost"));
  return true;
}

absl::Time Coordinator::LastSaveDeadline() const {
  if (chief_gone_since_ == absl::InfiniteFuture()) return chief_gone_since_;
  const CoordinatorWorker* const chief = members_.Find(KeyOf(chief_));
  // It has said that it cannot save: another start of it is waited for as long
  // as for any task.
  if (chief != nullptr && chief->unsaved) {
    return chief->awaited ? chief->last_heard + options_.worker_timeout
                          : absl::InfinitePast();
  }
  return chief_gone_since_ + options_.max_wait;
}

void Coordinator::CheckSave(absl::Time now) {
  if (phase_ != RUNNING) return;
  // The step of a round that is stuck is in no update, and stays so while the
  // grants are paused.
  const int64_t under_way = gate_->IsStuck() ? 0 : budget_.outstanding();
  // The chief saves when its own step is counted; it may be in an evaluation,
  // which it then gives up.
  const int64_t of_chief = gate_->Holds(KeyOf(chief_)) ? 1 : 0;
  if (saves_.Advance(std::max<int64_t>(0, under_way - of_chief), now)) {
    ++state_version_;
  }
}

void Coordinator::SetPhase(JobPhase phase) {
  phase_ = phase;
  ++state_version_;
}

}  // namespace muster
