#include "worker/session/session_machine.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/stopped_error.h"
#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "worker/client/call_status.h"
#include "worker/client/failing_time.h"

namespace muster {
namespace {

// How often a shard with an unexpected epoch is asked again, and an idle chief
// says Hello.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
// How often a chief that has finished looks whether the job is DONE.
constexpr absl::Duration kEndPoll = absl::Milliseconds(250);
constexpr int kSaveReportAttempts = 5;
// After so long without a failure the pauses before another try begin anew.
constexpr absl::Duration kCalm = absl::Seconds(5);
// A question for a step that is not answered for so long, or so long after the
// time that it may wait at ps task 0, is talked of: the network may have
// swallowed it. Within 3 s of a cut, also where it may wait for 1 s.
constexpr absl::Duration kSilence = absl::Seconds(2);
constexpr absl::Duration kLateness = absl::Milliseconds(1500);
// The longest text of a peer's version in a message.
constexpr size_t kMaxVersionChars = 40;

// Damage that repeats did not get round is the network's fault, not this
// task's.
int UnlessDamaged(const absl::Status& status, ExitCode otherwise) {
  return IsDamaged(status) ? kExitRetryable : otherwise;
}

int ExitCodeOfRefusal(const absl::Status& status) {
  if (IsReplaced(status)) return kExitFailed;
  const bool insecure = status.code() == absl::StatusCode::kUnauthenticated ||
                        status.code() == absl::StatusCode::kPermissionDenied;
  return UnlessDamaged(status, insecure ? kExitInsecure : kExitBadConfig);
}

// A ps refuses another protocol too; one that is older may not know how.
absl::Status CheckProtocol(const HelloReply& reply, const std::string& ps) {
  if (reply.protocol_version() == kProtocolVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      ps, " speaks protocol ", reply.protocol_version(), " (version '",
      absl::CHexEscape(reply.muster_version().substr(0, kMaxVersionChars)),
      "'), this worker speaks protocol ", kProtocolVersion, " (version '",
      kMusterVersion, "'); install one version everywhere"));
}

// The task's entry in the state; nullptr if it has none.
const WorkerState* FindWorker(const JobState& state, const TaskId& task) {
  for (const WorkerState& worker : state.workers()) {
    if (worker.sender().task() == task) return &worker;
  }
  return nullptr;
}

// "/job:worker/task:1, /job:worker/task:2"; of a vector or a repeated field.
template <typename Tasks>
std::string TaskNames(const Tasks& tasks) {
  return absl::StrJoin(tasks, ", ", [](std::string* out, const TaskId& task) {
    absl::StrAppend(out, TaskName(task));
  });
}

// "/job:worker/task:2 to push its gradient of step 120".
std::string DescribeWait(const StepReply& reply) {
  const std::string tasks = TaskNames(reply.waiting_for());
  return absl::StrCat(tasks,
                      tasks.empty() || reply.waiting_why().empty() ? "" : " ",
                      reply.waiting_why());
}

// The rows of an update, if they are others than those that were said, or to be
// expected, before; "" if not.
std::string DescribeNewUpdate(const JobState& state, int64_t* workers) {
  const UpdateSize& update = state.update();
  const int64_t before = *workers == 0 ? update.full_workers() : *workers;
  *workers = update.workers();
  if (*workers == before || state.phase() != RUNNING) return "";
  return absl::StrCat("an update has ", update.rows(), " rows, of ", *workers,
                      " of ", update.total_workers(), " workers");
}

EndMachine::Options EndOptions(const SessionMachine::Options& options) {
  EndMachine::Options end;
  end.self = options.self;
  end.chief = options.chief;
  end.chief_task = options.chief_task;
  end.goal = options.goal;
  end.saves = options.saves;
  end.saved_step = options.saved_step;
  end.finished = options.finished;
  end.standalone = options.ps_addresses[0].empty();
  return end;
}

}  // namespace

std::string DescribeLostSteps(const TaskId& task, int64_t steps) {
  return absl::StrCat(TaskName(task), " lost ", steps, " acknowledged ",
                      steps == 1 ? "step" : "steps", " with a ps");
}

SessionMachine::SessionMachine(const Options& options)
    : options_(options),
      peers_(options.ps_addresses),
      steps_(options.step_wait),
      end_(EndOptions(options)) {}

std::vector<SessionAction> SessionMachine::Handle(const SessionEvent& event,
                                                  absl::Time now) {
  now_ = now;
  actions_.clear();
  if (exited_) return {};
  std::visit([this](const auto& e) { On(e); }, event);
  if (!exited_) Advance();
  return std::move(actions_);
}

absl::Time SessionMachine::next_wakeup() const {
  absl::Time next = absl::InfiniteFuture();
  // Who ends greets nobody any more.
  if (peers_.next_due() > now_) next = peers_.next_due();
  // Not those that are over: while a call is under way nothing is said.
  for (const absl::Time due :
       {retry_at_, steps_.ask_again_at(), end_.drain_until(), greet_at_,
        save_report_at_, waiting_.next_due(),
        waiting_.since() + options_.max_wait, end_waiting_.next_due(),
        answer_due_, answer_waiting_.next_due(), ask_at_,
        waiting_.since() + end_.PatienceForPs(state_)}) {
    if (due > now_) next = std::min(next, due);
  }
  return next;
}

// ---- Events -------------------------------------------------------------

void SessionMachine::On(const HelloEvent& event) {
  peers_.OnReply(event.ps_task, event.reply, now_);
  const std::string ps =
      PsName(event.ps_task, options_.ps_addresses[event.ps_task]);
  if (event.reply.ok()) {
    const absl::Status same = CheckProtocol(*event.reply, ps);
    if (!same.ok()) {
      return ExitWith({kExitBadConfig, std::string(same.message())});
    }
    if (event.reply->takeover() != 0) return;  // not greeted yet
    if (event.ps_task == 0 &&
        event.reply->ps_incarnation() != registered_with_) {
      registered_with_ = 0;
    }
    return;
  }
  const absl::Status& status = event.reply.status();
  if (end_.is_leaving() || IsTransient(status)) return;
  ExitWith(
      {ExitCodeOfRefusal(status),
       absl::StrCat(ps, " refused: ", WithoutPsName(status.message(), ps))});
}

void SessionMachine::On(const RegisterEvent& event) {
  register_in_flight_ = false;
  if (std::exchange(is_asking_, false)) return OnAsked(event.reply);
  const bool confirmed = register_takeover_ != 0;
  register_takeover_ = event.reply.ok() ? event.reply->takeover() : 0;
  // Somebody else takes over at the same time.
  if (confirmed && register_takeover_ != 0) RetryLater();
  if (end_.is_leaving()) return OnRegisteredAgain(event.reply.status());
  if (event.reply.ok()) {
    if (!peers_.AllGreeted() || register_takeover_ != 0) return;
    if (WantsToGoOn(event.reply->state())) {
      goes_on_ = true;
      return;
    }
    goes_on_ = false;
    was_member_ = true;
    registered_with_ = peers_.replies()[0].ps_incarnation();
    save_requests_seen_ = 0;
    registered_position_ = event.reply->position();
    state_ = event.reply->state();
    end_.OnRegistered(state_);
    SayNews();
    OnProgress();
    return;
  }
  const absl::Status& status = event.reply.status();
  if (IsTransient(status)) return Reconnect(status);
  if (IsReplaced(status)) return ReconnectOrYield(status);
  ExitWith({ExitCodeOfRefusal(status), std::string(status.message())});
}

void SessionMachine::On(const WatchEvent& event) {
  if (event.state.ok()) return AdoptState(*event.state);
  watching_ = false;
  ReconnectOrYield(event.state.status());
}

void SessionMachine::On(const BeginEpochEvent& event) {
  busy_ = false;
  if (event.reply.ok()) {
    AdoptState(event.reply->state());
    busy_ = true;
    actions_.push_back(chief_.OnBegun(*event.reply));
    return;
  }
  chief_.OnFailed();
  if (event.reply.status().code() == absl::StatusCode::kAborted) {
    // An earlier incarnation of the chief is not given up yet.
    WaitFor(std::string(event.reply.status().message()));
    return RetryLater();
  }
  ReconnectOrYield(event.reply.status());
}

void SessionMachine::On(const LoadEvent& event) {
  busy_ = false;
  if (event.model.ok()) {
    busy_ = true;
    actions_.push_back(chief_.OnLoaded(*event.model));
    return;
  }
  chief_.OnFailed();
  const absl::Status& status = event.model.status();
  if (IsStopped(status)) return;
  if (event.checkpoint_unusable) {
    return Fail({kExitBadCheckpoint, std::string(status.message())});
  }
  if (IsTransient(status) || IsFenced(status)) return Reconnect(status);
  Fail({UnlessDamaged(status, kExitBadConfig), std::string(status.message())});
}

void SessionMachine::On(const CommitEvent& event) {
  busy_ = false;
  if (!event.reply.ok()) {
    chief_.OnFailed();
    return ReconnectOrYield(event.reply.status());
  }
  chief_.OnCommitted();
  AdoptState(event.reply->state());
  peers_.SetModelEpoch(state_.model_epoch());
}

void SessionMachine::On(const StepEvent& event) {
  busy_ = false;
  answer_due_ = absl::InfiniteFuture();
  if (!event.reply.ok()) {
    answer_waiting_.Stop();
    return ReconnectOrYield(event.reply.status());
  }
  StopWaiting(&answer_waiting_);
  OnProgress();
  switch (steps_.OnAnswer(*event.reply, now_)) {
    case StepMachine::Answer::kGranted:
      return StopWaiting(&step_waiting_);
    case StepMachine::Answer::kRefused:
      return WaitForOthers(*event.reply);
    case StepMachine::Answer::kTooFewReplicas:
      return end_.OnTooFew(
          absl::StrCat(kTooFewReplicas, ": ", DescribeWait(*event.reply)));
    case StepMachine::Answer::kReturned:
      return;
  }
}

void SessionMachine::On(const TrainEvent& event) {
  busy_ = false;
  if (event.report.ok()) {
    StopWaiting(&failing_);
    OnProgress();
    return steps_.OnTaken(*event.report);
  }
  const absl::Status& status = event.report.status();
  if (IsStopped(status)) return steps_.OnGivenUp();
  if (!IsTransient(status) && !IsFenced(status)) {
    const ExitCode code = IsTaken(status) ? kExitBadCheckpoint : kExitFailed;
    return Fail({UnlessDamaged(status, code), std::string(status.message())});
  }
  if (event.may_resume) {
    steps_.OnUnfinished(std::string(status.message()));
  } else {
    steps_.OnGivenUp();
  }
  WaitFor(&failing_,
          absl::StrCat("a step to succeed (", status.message(), ")"));
  if (!exited_) Reconnect(status);
}

void SessionMachine::On(const FinalEvent& event) {
  busy_ = false;
  // A full disk is no lost peer: trying for ever would only hide it.
  const bool lost_peer = IsTransient(event.status) &&
                         !absl::IsResourceExhausted(event.status) &&
                         !IsStopped(event.status);
  if (lost_peer || IsFenced(event.status)) {
    if (state_.phase() == DONE) {
      return ExitWith(EndMachine::ExitWithoutSave(event.status.message()));
    }
    // A ps died while the end was being saved: recover, then try again.
    if (!end_.is_signalled() && end_.too_few().empty()) {
      return Reconnect(event.status);
    }
  }
  end_.OnSaved(event.status);
}

void SessionMachine::On(const FinishEvent& event) {
  busy_ = false;
  if (!end_.is_leaving()) return OnStaying(event);
  if (auto exit = end_.OnFinished(event.reply, now_)) {
    return ExitWith(*std::move(exit));
  }
  if (!event.reply.ok()) {
    end_waiting_.Stop();
    return RetryLater();
  }
  failures_ = 0;
  retry_at_ = now_ + kEndPoll;
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(event.reply->state(), options_.self);
  std::string line = end_waiting_.WaitFor(
      unfinished.empty()
          ? absl::StrCat(PsName(0, options_.ps_addresses[0]), " to end the job")
          : absl::StrCat(TaskNames(unfinished), " to finish"),
      now_);
  if (!line.empty()) SayLine(std::move(line));
}

// The ps that asked has a few seconds.
void SessionMachine::On(const SaveReportLostEvent& event) {
  if (event.attempt >= kSaveReportAttempts) return;
  save_report_ =
      SendSaveReport{event.save_request, event.error, event.attempt + 1};
  save_report_at_ = now_ + RetryPause(event.attempt - 1);
}

void SessionMachine::On(const SignalEvent& event) {
  end_.OnSignal(event.signal, now_);
}

void SessionMachine::On(const StopEvent& event) { end_.OnStop(event); }

// ---- What the state asks for --------------------------------------------

void SessionMachine::Advance() {
  if (now_ >= answer_due_) WaitForAnswer();
  if (exited_) return;
  if (end_.is_leaving()) return AdvanceLeaving();
  if (end_.is_signalled() && !busy_) return AdvanceSignalled();
  if (!end_.too_few().empty()) return AdvanceTooFew();
  if (state_.phase() == DONE && !busy_) return AdvanceDone();
  if (!Connect()) return;
  AskToSave();
  RepeatSaveReport();
  if (busy_ || Pause()) return;
  if (state_.phase() == STOPPING && !options_.chief &&
      (!steps_.has_report() || NobodyWantsReport())) {
    return AdvanceReported();
  }
  StopWaiting(&end_waiting_);
  if (!EpochIsUsable(state_, peers_.replies())) return AdvanceWithoutEpoch();
  if (!UseEpoch()) return;
  if (state_.phase() == STOPPING && !steps_.has_report()) {
    return AdvanceStopping();
  }
  AdvanceRunning();
}

void SessionMachine::AdvanceLeaving() {
  if (auto exit = end_.ExitOfSeenEnd(state_)) return ExitWith(*std::move(exit));
  if (busy_ || Pause()) return;
  busy_ = true;
  if (end_.must_register()) return Register();
  actions_.push_back(end_.RepeatFinish());
}

// Before this task replaces another start of itself, which may be another
// job's.
bool SessionMachine::MayTakeOver() {
  if (!options_.asks_before_takeover || may_take_over_ ||
      !peers_.WantsTakeover()) {
    return true;
  }
  if (!register_in_flight_ && !Pause()) {
    register_in_flight_ = is_asking_ = true;
    SendRegister question;
    question.asks_only = true;
    actions_.push_back(question);
  }
  WaitFor(absl::StrCat(PsName(0, options_.ps_addresses[0]),
                       " to say whether this task may replace another start "
                       "of it"));
  return false;
}

void SessionMachine::OnAsked(const absl::StatusOr<RegisterReply>& reply) {
  may_take_over_ = reply.ok();
  const absl::Status& status = reply.status();
  if (IsTransient(status)) return RetryLater();
  if (!status.ok()) {
    ExitWith({ExitCodeOfRefusal(status), std::string(status.message())});
  } else if (!peers_.AllGreeted() && reply->state().phase() == DONE &&
             !reply->state().may_go_on()) {
    state_ = reply->state();
  }
}

// The job is over, and this training wants more of it.
bool SessionMachine::WantsToGoOn(const JobState& state) const {
  return !goes_on_ && !was_member_ && state.phase() == DONE &&
         state.may_go_on() && !IsReached(options_.goal, state);
}

// Hello to all, Register, Watch. False while one of the first two is missing.
bool SessionMachine::Connect() {
  if (!MayTakeOver()) return false;
  GreetDuePeers();
  if (!peers_.AllGreeted()) {
    WaitForPs();
    return false;
  }
  ask_at_ = absl::InfiniteFuture();
  if (registered_with_ == 0) {
    if (!register_in_flight_ && !Pause()) Register();
    const std::string ps_0 = PsName(0, options_.ps_addresses[0]);
    const std::string cause = WithoutPsName(reconnect_cause_, ps_0);
    WaitFor(absl::StrCat(ps_0, " to register this task",
                         cause.empty() ? "" : " (", cause,
                         cause.empty() ? "" : ")"));
    return false;
  }
  if (!watching_ && !Pause()) {
    watching_ = true;
    actions_.push_back(SendWatch{state_.state_version()});
  }
  return true;
}

void SessionMachine::WaitForPs() {
  const std::string missing = peers_.DescribeMissing();
  // While one of them is there, the others may only be late; but whoever knows
  // that the run is finished asks ps task 0 alone.
  const bool may_be_late = options_.finished.empty() || options_.own_ps >= 0
                               ? peers_.IsAnyGreetedBut(options_.own_ps)
                               : peers_.IsGreeted(0);
  const absl::Duration patience =
      may_be_late ? absl::InfiniteDuration() : end_.PatienceForPs(state_);
  if (patience < absl::InfiniteDuration() &&
      now_ >= waiting_.since() + std::min(patience, options_.max_wait)) {
    SayLine(end_.DescribeGonePs(state_, missing));
    return ExitWith(end_.ExitWithoutPs(state_));
  }
  WaitFor(missing);
  AskForEnd();
}

// Ps task 0 leaves last, and knows whether the job is over.
void SessionMachine::AskForEnd() {
  if (exited_ || !peers_.IsGreeted(0) || register_in_flight_) return;
  // At the start the others may only be late.
  if (ask_at_ == absl::InfiniteFuture()) {
    ask_at_ = was_member_ ? now_ : now_ + kAskAgain;
  }
  if (now_ < ask_at_) return;
  ask_at_ = now_ + kAskAgain;
  register_in_flight_ = is_asking_ = true;
  SendRegister question;
  question.asks_only = true;
  actions_.push_back(question);
}

void SessionMachine::GreetDuePeers() {
  for (const int ps_task : peers_.TakeDue(now_)) {
    actions_.push_back(SendHello{ps_task, peers_.takeover(ps_task)});
  }
}

void SessionMachine::Register() {
  register_in_flight_ = true;
  actions_.push_back(SendRegister{register_takeover_, goes_on_});
}

void SessionMachine::AdvanceWithoutEpoch() {
  steps_.Leave();
  if (options_.chief) {
    if (CanResume(state_, peers_.replies())) return ResumeEpoch();
    busy_ = true;
    actions_.push_back(
        chief_.Start(state_, peers_.replies(), steps_.last_epoch()));
    return;
  }
  if (state_.phase() == INITIAL) {
    return WaitFor(absl::StrCat(TaskName(options_.chief_task),
                                " to initialize or restore the model"));
  }
  for (int i = 0; i < peers_.size(); ++i) {
    const HelloReply& hello = peers_.replies()[i];
    const auto it = state_.ps_incarnations().find(i);
    const bool same = it != state_.ps_incarnations().end() &&
                      it->second == hello.ps_incarnation() &&
                      hello.state().model_epoch() <= state_.model_epoch();
    if (!same) peers_.Reset(i, now_ + kAskAgain);
  }
  WaitFor(absl::StrCat(TaskName(options_.chief_task),
                       " to restore the model: a ps was restarted"));
}

void SessionMachine::ResumeEpoch() {
  if (!ShardsHoldOwnModel()) return;
  const int64_t step = state_.global_step();
  std::string line =
      absl::StrCat("going on from step ", step, ", which the ps tasks hold");
  if (options_.saved_step >= 0 && options_.saved_step != step) {
    absl::StrAppend(&line, "; --train_dir has step ", options_.saved_step,
                    ", which is passed over");
  }
  SayLine(std::move(line));
  busy_ = true;
  actions_.push_back(chief_.Resume(state_, peers_.replies()));
}

bool SessionMachine::ShardsHoldOwnModel() {
  if (state_.fingerprint() == options_.model_fingerprint) {
    doubts_state_ = false;
    return true;
  }
  // An answer that was damaged on its way may still be one. Who has been in the
  // model registers anew, whatever version that state has.
  if (steps_.last_epoch() > 0 && !std::exchange(doubts_state_, true)) {
    registered_with_ = 0;
    Reconnect(absl::UnavailableError("it told of another model"));
    return false;
  }
  ExitWith({kExitBadConfig,
            absl::StrFormat(
                "the ps tasks hold another model (fingerprint %016x, this "
                "training has %016x): use the same --training and --set on "
                "every worker, or restart the ps tasks",
                state_.fingerprint(), options_.model_fingerprint)});
  return false;
}

// Enters the committed epoch if that is not done. False after a failure.
bool SessionMachine::UseEpoch() {
  StopWaiting(&waiting_);
  if (!ShardsHoldOwnModel()) return false;
  if (steps_.epoch() == state_.model_epoch()) return true;
  std::vector<uint64_t> incarnations = IncarnationsOf(peers_.replies());
  std::optional<DataPosition> position;
  if (!steps_.IsLastEpoch(state_.model_epoch(), incarnations)) {
    const WorkerState* const self = FindWorker(state_, options_.self);
    position = self != nullptr ? self->position() : registered_position_;
    const int64_t lost =
        steps_.Restore(self != nullptr ? self->steps() : 0, incarnations[0]);
    if (lost > 0) SayLine(DescribeLostSteps(options_.self, lost));
    end_.ForgetSave();
  }
  steps_.Enter(state_.model_epoch(), incarnations);
  actions_.push_back(EnterEpoch{state_.model_epoch(), std::move(incarnations),
                                std::move(position)});
  return true;
}

bool SessionMachine::InEpoch() const {
  return steps_.epoch() != 0 && steps_.epoch() == state_.model_epoch() &&
         EpochIsUsable(state_, peers_.replies());
}

void SessionMachine::AdvanceRunning() {
  const bool stops = !end_.stop_reason().empty() && !steps_.knows_stop();
  if (steps_.granted() && !stops) {
    greet_at_ = absl::InfiniteFuture();
    busy_ = true;
    actions_.push_back(steps_.Take());
    return;
  }
  const bool idle = !steps_.has_report();
  if (idle && steps_.IsRefused(state_.state_version(), now_)) {
    GreetAgain();
    return;
  }
  // A chief whose questions wait is as idle as one that does not ask.
  const bool waits = options_.step_wait > absl::ZeroDuration();
  if (idle && waits && !stops && GreetAgain()) return;
  ReportStep(stops ? end_.stop_reason() : "");
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

void SessionMachine::ReportStep(absl::string_view stop_reason) {
  busy_ = true;
  // The shards that have it do not take it a second time.
  if (steps_.is_unfinished()) return actions_.push_back(ResumeStep{});
  const bool may_wait = !end_.is_signalled() && state_.phase() == RUNNING;
  SendStep question =
      steps_.Ask(state_.state_version(), stop_reason, may_wait, now_);
  answer_due_ = now_ + std::max(kSilence, question.max_wait + kLateness);
  actions_.push_back(std::move(question));
}

void SessionMachine::WaitForAnswer() {
  const std::string what = absl::StrCat(PsName(0, options_.ps_addresses[0]),
                                        " to answer the question for a step");
  if (answer_waiting_.since() == absl::InfiniteFuture()) {
    answer_waiting_.WaitFor(what, steps_.asked_at());
  }
  WaitFor(&answer_waiting_, what);
}

// The epoch of the report is lost, and the chief, which would have to restore
// it, has ended.
bool SessionMachine::NobodyWantsReport() const {
  return !EpochIsUsable(state_, peers_.replies()) &&
         HasFinished(state_, options_.chief_task);
}

bool SessionMachine::WantsSave() const {
  return options_.chief && steps_.epoch() != 0 &&
         state_.save_requests() >
             std::max(save_requests_seen_, state_.saves_answered());
}

// When the own step is counted, and before another one is taken.
void SessionMachine::AskToSave() {
  if (!WantsSave() || busy_ || steps_.has_report()) return;
  if (save_after_step_ < 0) save_after_step_ = steps_.begun() + 1;
  if (steps_.granted() && steps_.begun() < save_after_step_) return;
  save_after_step_ = -1;
  save_requests_seen_ = state_.save_requests();
  actions_.push_back(SaveNow{save_requests_seen_});
}

void SessionMachine::RepeatSaveReport() {
  if (!save_report_.has_value() || now_ < save_report_at_) return;
  actions_.push_back(*std::exchange(save_report_, std::nullopt));
  save_report_at_ = absl::InfiniteFuture();
}

// ---- The end ------------------------------------------------------------

void SessionMachine::AdvanceSignalled() {
  // The job's end came first.
  if (end_.IsCompleted()) return Leave(end_.FinishCompleted());
  // Others may train in an epoch that the chief has not entered itself.
  const bool has_epoch =
      steps_.last_epoch() != 0 ||
      (peers_.AllGreeted() && EpochIsUsable(state_, peers_.replies()));
  if (options_.chief && has_epoch && !Drain()) return;
  if (options_.chief && has_epoch && !end_.save_is_over()) {
    actions_.push_back(end_.GiveUpSave());
  }
  if (!options_.chief && !ReportLast()) return;
  // The signal's exit code does not tell.
  if (const auto failed = end_.SayFailedSave()) actions_.push_back(*failed);
  if (registered_with_ == 0 || !peers_.AllGreeted()) {
    return ExitWith(end_.ExitOfSignal());
  }
  Leave(end_.FinishSignalled());
}

// First nobody gets another step, then all report the one that they are in,
// and only then is saved: no acknowledged step is missing there.
bool SessionMachine::Drain() {
  if (end_.save_is_over()) return true;
  const std::optional<bool> in_epoch = ReachEpoch();
  if (!in_epoch.value_or(false)) return in_epoch.has_value();
  const bool stopping = steps_.knows_stop() || state_.phase() == STOPPING;
  if (steps_.has_report() || !stopping) {
    ReportStep(stopping ? "" : "interrupted");
    return false;
  }
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(state_, options_.self);
  if (!unfinished.empty()) {
    if (now_ < end_.drain_until()) {
      WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
      return false;
    }
    SayLine(absl::StrCat("not waiting for ", TaskNames(unfinished),
                         " any longer: a step that it has not reported may be "
                         "missing in the checkpoint"),
            /*is_error=*/true);
  }
  Save(/*completed=*/false, "interrupted");
  return false;
}

bool SessionMachine::ReportLast() {
  if (!steps_.has_report() || state_.phase() == DONE) return true;
  const std::optional<bool> in_epoch = ReachEpoch();
  if (!in_epoch.value_or(false)) return in_epoch.has_value();
  // Another epoch wants no report.
  if (!steps_.has_report()) return true;
  ReportStep(/*stop_reason=*/"");
  return false;
}

std::optional<bool> SessionMachine::ReachEpoch() {
  if (InEpoch()) return true;
  // A ps is lost, or its answer was. It may be there again in time.
  if (now_ >= end_.drain_until()) return false;
  if (!Connect() || Pause()) return std::nullopt;
  if (!EpochIsUsable(state_, peers_.replies())) return false;
  if (!UseEpoch()) return std::nullopt;
  return true;
}

// No update is made any more, so that what the chief saves is what all had.
void SessionMachine::AdvanceTooFew() {
  if (busy_ || Pause()) return;
  if (options_.chief && !end_.save_is_over()) {
    busy_ = true;
    actions_.push_back(RunFinal{/*completed=*/false, "too_few_replicas"});
    return;
  }
  if (const auto failed = end_.SayFailedSave()) actions_.push_back(*failed);
  Fail({kExitRetryable, end_.too_few()});
}

// The end of all but the chief: it takes no more steps, and leaves when the
// chief has saved. Should a ps be lost before that, the job goes on from an
// older checkpoint, and wants its workers.
void SessionMachine::AdvanceReported() {
  if (HasTooFewReplicas(state_)) {
    return Fail({kExitRetryable, state_.stop_reason()});
  }
  StopWaiting(&waiting_);
  const bool chief_is_there = MaySave(state_, options_.chief_task);
  if (!chief_is_there && !state_.unsaved()) {
    StopWaiting(&end_waiting_);
    return Leave(end_.FinishDone());
  }
  if (!HasFinished(state_, options_.self)) {
    busy_ = true;
    actions_.push_back(EndMachine::Stay(state_));
    return;
  }
  WaitFor(&end_waiting_,
          absl::StrCat(TaskName(options_.chief_task),
                       chief_is_there ? "" : ", which is lost, to come back,",
                       " to save the model and to finish"));
}

void SessionMachine::OnStaying(const FinishEvent& event) {
  if (!event.reply.ok()) return ReconnectOrYield(event.reply.status());
  AdoptState(event.reply->state());
  if (!HasFinished(state_, options_.self)) return RetryLater();
  failures_ = 0;
}

// The chief's end: after all others.
void SessionMachine::AdvanceStopping() {
  if (HasTooFewReplicas(state_)) {  // said an earlier start of this task
    end_.OnTooFew(state_.stop_reason());
    return AdvanceTooFew();
  }
  if (auto exit = end_.ExitOfFailedJob(state_)) return Fail(*std::move(exit));
  if (end_.save_is_over()) return Leave(end_.FinishCompleted());
  const std::vector<TaskId> unfinished =
      UnfinishedOthers(state_, options_.self);
  if (!unfinished.empty()) {
    WaitFor(absl::StrCat(TaskNames(unfinished), " to finish"));
  } else if (steps_.IsAheadOf(state_.state_version())) {
    WaitFor("the account of all steps");
  } else {
    return Save(/*completed=*/true, state_.stop_reason());
  }
  GreetAgain();
}

void SessionMachine::AdvanceDone() {
  if (end_.save_is_over()) return Leave(end_.FinishCompleted());
  if (auto exit = end_.ExitOfDoneJob(state_)) {
    std::string lateness = end_.DescribeLateness(state_);
    if (exit->code == kExitDone && !lateness.empty()) {
      SayLine(std::move(lateness));
    }
    return ExitWith(*std::move(exit));
  }
  if (!peers_.AllGreeted()) {
    return ExitWith(EndMachine::ExitWithoutSave(peers_.DescribeMissing()));
  }
  if (!ShardsHoldEpoch(state_, peers_.replies())) {
    return ExitWith(EndMachine::ExitWithoutSave("a ps was restarted"));
  }
  if (UseEpoch()) Save(/*completed=*/true, state_.stop_reason());
}

void SessionMachine::Save(bool completed, absl::string_view stop_reason) {
  busy_ = true;
  actions_.push_back(end_.Save(completed, stop_reason));
}

void SessionMachine::Leave(SendFinish finish) {
  failures_ = 0;
  busy_ = true;
  actions_.push_back(std::move(finish));
}

void SessionMachine::OnRegisteredAgain(const absl::Status& status) {
  busy_ = false;
  const bool must_confirm = register_takeover_ != 0;
  if (auto exit = end_.OnRegisteredAgain(status, must_confirm)) {
    return ExitWith(*std::move(exit));
  }
  if (!status.ok()) RetryLater();
}

// Tells the coordinator first if it knows us.
void SessionMachine::Fail(Exit exit) {
  if (registered_with_ == 0) return ExitWith(std::move(exit));
  Leave(end_.FinishFailed(std::move(exit)));
}

void SessionMachine::SayUncounted() {
  const bool is_lost =
      peers_.AllGreeted() && !EpochIsUsable(state_, peers_.replies());
  std::string line = steps_.DescribeUncounted();
  if (!line.empty() && !is_lost) SayLine(std::move(line), /*is_error=*/true);
}

void SessionMachine::ExitWith(Exit exit) {
  exited_ = true;
  if (exit.code != kExitDone) SayUncounted();
  actions_.push_back(std::move(exit));
}

void SessionMachine::SayNews() {
  std::string line = end_.SayFinishedBefore(state_, steps_.begun());
  if (!line.empty()) SayLine(std::move(line));
  line = DescribeNewUpdate(state_, &update_workers_);
  if (options_.chief && !line.empty()) SayLine(std::move(line));
}

// ---- Small moves --------------------------------------------------------

void SessionMachine::SayLine(std::string text, bool is_error) {
  actions_.push_back(Say{std::move(text), is_error});
}

void SessionMachine::Reconnect(const absl::Status& why) {
  if (end_.is_leaving()) return;
  steps_.Leave();
  step_waiting_.Stop();
  end_waiting_.Stop();
  peers_.ResetAll();
  if (IsFenced(why) && !IsReplaced(why)) {
    // A coordinator that does not know us: it is a new one.
    registered_with_ = 0;
  }
  reconnect_cause_ = std::string(why.message());
  // The wait began with the loss; half of the limit is left to ask who is
  // there.
  if (const absl::Duration failing = FailingTime(why);
      failing > absl::ZeroDuration()) {
    waiting_.TakeOver(now_ - std::min(failing, options_.max_wait / 2), now_);
  }
  RetryLater();
}

// After a failure of the coordinator's calls: its fence means that a newer
// start of this task has taken over, an invalid argument that this one is
// wrong.
void SessionMachine::ReconnectOrYield(const absl::Status& why) {
  if (end_.is_leaving()) return;
  if (IsReplaced(why)) {
    return ExitWith({kExitFailed, std::string(why.message())});
  }
  if (!absl::IsInvalidArgument(why)) return Reconnect(why);
  if (busy_) {
    return ExitWith(
        {UnlessDamaged(why, kExitBadConfig), std::string(why.message())});
  }
  FailRefused(why);
}

// This task asks for something wrong, and would the next time.
void SessionMachine::FailRefused(const absl::Status& why) {
  Fail({UnlessDamaged(why, kExitBadConfig),
        absl::StrCat(PsName(0, options_.ps_addresses[0]),
                     " refused: ", why.message())});
}

void SessionMachine::AdoptState(const JobState& state) {
  if (state.state_version() >= state_.state_version()) state_ = state;
  SayNews();
}

void SessionMachine::WaitFor(WaitReporter* waiting, const std::string& what) {
  std::string line = waiting->WaitFor(what, now_);
  // At the end of the job ps task 0 knows for whom to wait, but for a chief
  // that is lost.
  const bool is_end = state_.phase() == STOPPING && registered_with_ != 0 &&
                      peers_.AllGreeted() &&
                      MaySave(state_, options_.chief_task);
  const bool limited = !is_end && !end_.is_signalled();
  if (limited && now_ - waiting->since() >= options_.max_wait) {
    return ExitWith(
        {kExitRetryable,
         absl::StrCat("gave up after waiting ",
                      absl::FormatDuration(options_.max_wait), " for ", what)});
  }
  if (!line.empty()) SayLine(std::move(line));
}

void SessionMachine::WaitForOthers(const StepReply& reply) {
  const std::string what = DescribeWait(reply);
  if (what.empty()) return StopWaiting(&step_waiting_);
  if (step_waiting_.since() == absl::InfiniteFuture()) {
    step_waiting_.WaitFor(what, steps_.asked_at());
  }
  WaitFor(&step_waiting_, what);
}

void SessionMachine::StopWaiting(WaitReporter* waiting) {
  if (waiting->Stop()) SayLine("no longer waiting");
}

void SessionMachine::OnProgress() {
  if (now_ >= retry_at_ + kCalm) failures_ = 0;
}

void SessionMachine::RetryLater() {
  retry_at_ = now_ + RetryPause(failures_);
  ++failures_;
}

}  // namespace muster
