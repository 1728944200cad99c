#include "ps_server/coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "ps_server/caller/count_range.h"
#include "ps_server/caller/takeover_token.h"

namespace muster {
namespace {

bool IsTrainingJob(const Sender& sender) {
  return sender.task().job() == "worker" || sender.task().job() == "chief";
}

bool SameProcess(const Sender& a, const Sender& b) {
  return KeyOf(a) == KeyOf(b) && a.incarnation() == b.incarnation();
}

// A sender without the fields that nobody here knows: it is kept, and told to
// everybody.
Sender MakeSender(const TaskKey& key, uint64_t incarnation) {
  Sender sender;
  sender.mutable_task()->set_job(key.first);
  sender.mutable_task()->set_index(key.second);
  sender.set_incarnation(incarnation);
  return sender;
}

bool IsCarried(const DataPosition& position) {
  return position.ByteSizeLong() <= CoordinatorWorker::kMaxPositionBytes;
}

// What a manifest says of the workers.
absl::Status CheckRestored(const CommitEpochRequest& request) {
  if (request.workers_size() > static_cast<int>(Coordinator::kMaxTasks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: ", request.workers_size(),
                     " workers; a job has at most ", Coordinator::kMaxTasks));
  }
  for (const WorkerState& worker : request.workers()) {
    if (IsCount(worker.steps()) && IsCount(worker.examples()) &&
        IsCount(worker.staleness_sum()) && IsCount(worker.staleness_count()) &&
        IsCount(worker.dropped_steps()) && IsCarried(worker.position())) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: a count of ", TaskName(worker.sender()),
                     " is out of range, or its data position above ",
                     CoordinatorWorker::kMaxPositionBytes,
                     " bytes; is the manifest damaged?"));
  }
  if (!IsCarried(request.start_position())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "commit epoch: the start position has ",
        request.start_position().ByteSizeLong(), " bytes; wanted at most ",
        CoordinatorWorker::kMaxPositionBytes));
  }
  return absl::OkStatus();
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options)
    : options_(std::move(options)),
      listed_(options_.cluster),
      listeners_(options_.worker_timeout),
      gate_(StepGate::Free(GatedJob())) {}

StepGate::Job Coordinator::GatedJob() {
  return {&budget_, [this] { return LiveTasks(); }};
}

void Coordinator::Hear(CoordinatorWorker& worker, absl::Time now) {
  worker.last_heard = std::max(worker.last_heard, now);
  if (worker.state != MemberState::kLost) return;
  worker.state = MemberState::kActive;
  ++state_version_;
  Say(absl::StrCat(TaskName(worker.sender), " is back"));
  SayUpdateRows();
}

absl::StatusOr<CoordinatorWorker*> Coordinator::FindSender(
    absl::string_view request, const Sender& sender, absl::Time now) {
  const auto it = workers_.find(KeyOf(sender));
  if (it == workers_.end() || !it->second.registered) {
    return absl::FailedPreconditionError(absl::StrCat(
        request, " from ", TaskName(sender),
        ": it is not registered here (was ps task 0 restarted?); register"));
  }
  CoordinatorWorker& worker = it->second;
  if (worker.sender.incarnation() != sender.incarnation()) {
    const bool retired = worker.IsRetired(sender.incarnation());
    return absl::FailedPreconditionError(absl::StrCat(
        retired ? kFencedPrefix : "", request, " from ", TaskName(sender),
        ": incarnation ", absl::Hex(sender.incarnation()),
        retired ? " was replaced by a newer start of that task"
                : " is not registered here; register"));
  }
  Hear(worker, now);
  return &worker;
}

bool Coordinator::AnotherIsLive(const TaskKey& key) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&key](const auto& entry) {
                       return entry.first != key && entry.second.IsThere();
                     });
}

absl::Status Coordinator::CheckRegister(const RegisterRequest& request,
                                        absl::Time now) {
  const Sender& sender = request.sender();
  const TaskKey key = KeyOf(sender);
  if (request.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "register ", TaskName(key), ": it speaks protocol ",
        request.protocol_version(), ", this ps speaks ", kProtocolVersion));
  }
  if (!IsTrainingJob(sender) || sender.task().index() < 0 ||
      sender.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("register ", TaskName(key),
                     ": wanted a task of job worker or chief with an "
                     "incarnation"));
  }
  RETURN_IF_ERROR(listed_.Check(absl::StrCat("register ", TaskName(key)), key));
  const auto known = workers_.find(key);
  if (known != workers_.end() &&
      known->second.IsRetired(sender.incarnation())) {
    return FindSender("register", sender, now).status();
  }
  if (!HasRoomFor(key)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("register ", TaskName(key), ": this job has ",
                     options_.max_unlisted_tasks,
                     " tasks already that its cluster does not list"));
  }
  return CheckTraining(request);
}

uint64_t Coordinator::WantedTakeover(const RegisterRequest& request) const {
  const uint64_t incarnation = request.sender().incarnation();
  const auto known = workers_.find(KeyOf(request.sender()));
  if (known == workers_.end() || !known->second.registered) return 0;
  const CoordinatorWorker& worker = known->second;
  const uint64_t current = worker.sender.incarnation();
  if (current == incarnation) return 0;
  const uint64_t wanted =
      TakeoverToken(current, incarnation, worker.num_retired);
  return request.takeover() == wanted ? 0 : wanted;
}

CoordinatorWorker& Coordinator::AdmitSender(const Sender& sender) {
  const auto [entry, is_new_task] = workers_.try_emplace(KeyOf(sender));
  CoordinatorWorker& worker = entry->second;
  // Who comes back to a job that is done has finished if its task had, and has
  // left nothing to do.
  const bool has_finished =
      phase_ == DONE && worker.HasFinished() && !worker.unsaved;
  if (is_new_task) worker.position = start_position_;
  // A task that is known from a manifest alone has no process yet.
  if (worker.sender.incarnation() != 0 &&
      worker.sender.incarnation() != sender.incarnation()) {
    ReturnGrant(worker);
    gate_->Forget(KeyOf(sender));
    AnswerOlderStep(KeyOf(sender));
    Say(absl::StrCat(TaskName(sender), " was started anew: incarnation ",
                     absl::Hex(sender.incarnation()), " replaces ",
                     absl::Hex(worker.sender.incarnation())));
  }
  worker.Admit(sender, has_finished);
  return worker;
}

absl::StatusOr<RegisterReply> Coordinator::Register(
    const RegisterRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckRegister(request, now));
  RegisterReply reply;
  reply.set_takeover(WantedTakeover(request));
  if (reply.takeover() != 0) {
    *reply.mutable_state() = State();
    return reply;
  }
  const TaskKey key = KeyOf(request.sender());
  const Sender sender = MakeSender(key, request.sender().incarnation());
  AdoptTraining(request);

  CoordinatorWorker& worker = AdmitSender(sender);
  worker.may_be_chief = IsChief(request);
  Hear(worker, now);
  if (worker.may_be_chief && (LiveChief() == nullptr || KeyOf(chief_) == key)) {
    chief_ = sender;
  }
  ++state_version_;
  CheckPause(now);

  *reply.mutable_position() = worker.position;
  *reply.mutable_state() = State();
  return reply;
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
  if (IsTrainingJob(request.sender())) {
    RETURN_IF_ERROR(FindSender("watch", request.sender(), now).status());
    RETURN_IF_ERROR(CheckWatched(request));
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
  const absl::Duration wait =
      std::clamp(absl::Milliseconds(request.max_wait_ms()),
                 absl::ZeroDuration(), options_.max_watch);
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
  if (LiveTasks().empty()) deadline = std::min(deadline, LastSaveDeadline());
  for (const WaitingWatch& watch : watches_) {
    deadline = std::min(deadline, watch.until);
  }
  for (const WaitingStep& step : waiting_steps_) {
    deadline = std::min(deadline, step.until);
  }
  for (const auto& [key, worker] : workers_) {
    if (!worker.IsWaitedFor()) continue;
    deadline = std::min(deadline, worker.last_heard + options_.worker_timeout);
  }
  deadline = std::min(deadline, gate_->NextDeadline());
  if (phase_ == RUNNING) deadline = std::min(deadline, saves_.NextDeadline());
  return std::min(deadline, listeners_.NextDeadline());
}

void Coordinator::Tick(absl::Time now) {
  bool lost_some = false;
  for (auto& [key, worker] : workers_) {
    if (now < worker.last_heard + options_.worker_timeout) continue;
    if (!worker.IsWaitedFor()) continue;
    worker.awaited = false;
    ++state_version_;
    if (!worker.IsThere()) continue;
    Say(absl::StrCat("lost ", TaskName(worker.sender), ": not heard of for ",
                     absl::ToInt64Seconds(now - worker.last_heard), " s"));
    lost_some = true;
    worker.state = MemberState::kLost;
    ReturnGrant(worker);
  }
  if (lost_some) SayUpdateRows();
  gate_->SeeLive(now);
  CheckRounds(now);
  CheckEnd(now);
  CheckSave(now);
  CheckPause(now);
  listeners_.Tick(now);
}

const CoordinatorWorker* Coordinator::LiveChief() const {
  const auto it = workers_.find(KeyOf(chief_));
  if (chief_.incarnation() == 0 || it == workers_.end() ||
      !SameProcess(it->second.sender, chief_) || !it->second.IsActive()) {
    return nullptr;
  }
  return &it->second;
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
  RETURN_IF_ERROR(CheckSeenEpoch(request.seen_epoch()));
  const CoordinatorWorker* const holder = LiveChief();
  if (holder != nullptr && !SameProcess(holder->sender, request.sender())) {
    return absl::AbortedError(absl::StrCat(
        "begin epoch: ", TaskName(chief_), " incarnation ",
        absl::Hex(chief_.incarnation()), " is the chief and is alive"));
  }
  // A repeat that was long on the way must not throw the epoch away that its
  // sender has committed since.
  if (request.seen_epoch() < committed_epoch_) {
    return absl::AbortedError(
        absl::StrCat("begin epoch: it has seen epoch ", request.seen_epoch(),
                     ", the committed one is ", committed_epoch_,
                     "; look at the job's state first"));
  }
  chief_ = sender->sender;
  announced_epoch_ = 1 + std::max({request.seen_epoch(), announced_epoch_,
                                   committed_epoch_, int64_t{0}});
  committed_epoch_ = 0;
  fingerprint_ = 0;
  ps_incarnations_.clear();
  stop_reason_.clear();
  budget_.Clear();
  gate_ = StepGate::Free(GatedJob());
  saves_.Clear();
  unsaved_.Clear();
  last_save_made_ = false;
  for (auto& [key, worker] : workers_) {
    // Who stayed takes part again.
    if (worker.IsThere()) worker.state = MemberState::kActive;
  }
  SetPhase(INITIAL);
  for (auto& [key, worker] : workers_) AnswerOlderStep(key);
  BeginEpochReply reply;
  reply.set_model_epoch(announced_epoch_);
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

// Not one of another epoch of the same number, when every ps had lost its
// memory before the first checkpoint.
bool Coordinator::IsRepeat(const CommitEpochRequest& request) const {
  return request.model_epoch() > 0 &&
         request.model_epoch() == committed_epoch_ &&
         request.fingerprint() == fingerprint_ &&
         std::map<int32_t, uint64_t>(request.ps_incarnations().begin(),
                                     request.ps_incarnations().end()) ==
             ps_incarnations_;
}

absl::StatusOr<CommitEpochReply> Coordinator::CommitEpoch(
    const CommitEpochRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckLease("commit epoch", request.sender(), now));
  CommitEpochReply reply;
  const int64_t epoch = request.model_epoch();
  if (IsRepeat(request)) {
    *reply.mutable_state() = State();
    return reply;
  }
  if (epoch != announced_epoch_ || phase_ != INITIAL || epoch == 0) {
    return absl::AbortedError(
        absl::StrCat("commit epoch ", epoch, ": the epoch that was begun is ",
                     announced_epoch_, " and the job is ",
                     JobPhase_Name(phase_), "; begin again"));
  }
  RETURN_IF_ERROR(CheckRestored(request));
  RETURN_IF_ERROR(CheckRestoredTasks(request));
  RETURN_IF_ERROR(unsaved_.Start(request, now));
  ASSIGN_OR_RETURN(gate_,
                   StepGate::Create(request, GatedJob(), RegisteredTasks(),
                                    now + options_.worker_timeout));
  committed_epoch_ = epoch;
  fingerprint_ = request.fingerprint();
  ps_incarnations_ = {request.ps_incarnations().begin(),
                      request.ps_incarnations().end()};
  // They are there, though their first Watch may be lost.
  for (const auto& [task, incarnation] : ps_incarnations_) {
    if (task != 0) listeners_.Expect(task, incarnation, now);
  }
  RestoreWorkers(request);
  SetPhase(RUNNING);
  CheckEnd(now);
  *reply.mutable_state() = State();
  return reply;
}

JobState Coordinator::State() const {
  JobState state;
  state.set_state_version(state_version_);
  state.set_phase(phase_);
  state.set_model_epoch(committed_epoch_);
  state.set_fingerprint(fingerprint_);
  state.set_global_step(budget_.steps());
  state.set_examples(budget_.examples());
  if (chief_.incarnation() != 0) *state.mutable_chief() = chief_;
  for (const auto& [key, worker] : workers_) {
    *state.add_workers() = worker.State();
  }
  state.set_stop_reason(stop_reason_);
  state.mutable_ps_incarnations()->insert(ps_incarnations_.begin(),
                                          ps_incarnations_.end());
  state.set_save_requests(saves_.raised());
  state.set_saves_answered(saves_.answered());
  state.set_save_error(saves_.error());
  state.set_unsaved((phase_ == STOPPING || phase_ == DONE) && AwaitsLastSave());
  state.mutable_staleness_counts()->Add(staleness_counts_.begin(),
                                        staleness_counts_.end());
  const StepRounds* const rounds = gate_->rounds();
  if (rounds != nullptr && rounds->is_open()) state.set_round(rounds->round());
  return state;
}

void Coordinator::SetPhase(JobPhase phase) {
  phase_ = phase;
  ++state_version_;
}

}  // namespace muster
