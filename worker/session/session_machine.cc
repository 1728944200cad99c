#include "worker/session/session_machine.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/cluster/task_id.h"
#include "common/rpc/protocol.h"
#include "worker/client/call_status.h"
#include "worker/client/failing_time.h"

namespace muster {
namespace {

// How often a shard with an unexpected epoch is asked again.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
constexpr int kSaveReportAttempts = 5;
// The longest text of a peer's version in a message.
constexpr size_t kMaxVersionChars = 40;

int ExitCodeOfRefusal(const absl::Status& status) {
  if (IsReplaced(status)) return kExitFailed;
  const bool insecure = status.code() == absl::StatusCode::kUnauthenticated ||
                        status.code() == absl::StatusCode::kPermissionDenied;
  return insecure ? kExitInsecure : kExitBadConfig;
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

}  // namespace

std::string DescribeLostSteps(const TaskId& task, int64_t steps) {
  return absl::StrCat(TaskName(task), " lost ", steps, " acknowledged ",
                      steps == 1 ? "step" : "steps", " with a ps");
}

SessionMachine::SessionMachine(const Options& options)
    : options_(options), peers_(options.ps_addresses) {}

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
  if (retry_at_ > now_) next = std::min(next, retry_at_);
  if (ask_again_at_ > now_) next = std::min(next, ask_again_at_);
  if (drain_until_ > now_) next = std::min(next, drain_until_);
  if (greet_at_ > now_) next = std::min(next, greet_at_);
  if (save_report_at_ > now_) next = std::min(next, save_report_at_);
  // Not those that are over: while a call is under way nothing is said.
  for (const absl::Time due :
       {waiting_.next_due(), waiting_.since() + options_.max_wait,
        end_waiting_.next_due()}) {
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
      return ExitWith(kExitBadConfig, std::string(same.message()));
    }
    if (event.reply->takeover() != 0) return;  // not greeted yet
    if (event.ps_task == 0 &&
        event.reply->ps_incarnation() != registered_with_) {
      registered_with_ = 0;
    }
    return;
  }
  if (ending_ || IsTransient(event.reply.status())) return;
  ExitWith(ExitCodeOfRefusal(event.reply.status()),
           absl::StrCat(ps, " refused: ",
                        WithoutPsName(event.reply.status().message(), ps)));
}

void SessionMachine::On(const RegisterEvent& event) {
  register_in_flight_ = false;
  const bool confirmed = register_takeover_ != 0;
  register_takeover_ = event.reply.ok() ? event.reply->takeover() : 0;
  // Somebody else takes over at the same time.
  if (confirmed && register_takeover_ != 0) RetryLater();
  if (ending_) return OnRegisteredToFinish(event.reply.status());
  if (event.reply.ok()) {
    if (!peers_.AllGreeted() || register_takeover_ != 0) return;
    registered_with_ = peers_.replies()[0].ps_incarnation();
    save_requests_seen_ = 0;
    registered_position_ = event.reply->position();
    state_ = event.reply->state();
    came_in_time_ |= state_.phase() != DONE;
    SayIfFinishedBefore();
    failures_ = 0;
    return;
  }
  const absl::Status& status = event.reply.status();
  if (IsTransient(status)) return Reconnect(status);
  if (absl::StartsWith(status.message(), kFencedPrefix)) {
    return ReconnectOrYield(status);
  }
  ExitWith(ExitCodeOfRefusal(status), std::string(status.message()));
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
  if (event.checkpoint_unusable) {
    return Fail(kExitBadCheckpoint, std::string(status.message()));
  }
  if (IsTransient(status) || IsFenced(status)) return Reconnect(status);
  Fail(kExitBadConfig, std::string(status.message()));
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

// ---- What the state asks for --------------------------------------------

void SessionMachine::Advance() {
  if (ending_) {
    if (HasSeenTheEnd()) return ExitWith(exit_code_, exit_text_);
    if (busy_ || Pause()) return;
    if (!must_register_) return Finish(finish_reason_, finish_stops_job_);
    busy_ = true;
    return Register();
  }
  if (signal_ != 0 && !busy_) return AdvanceSignalled();
  if (!too_few_.empty()) return AdvanceTooFew();
  if (state_.phase() == DONE && !busy_) return AdvanceDone();
  if (!Connect()) return;
  AskToSave();
  RepeatSaveReport();
  if (busy_ || Pause()) return;
  if (state_.phase() == STOPPING && !options_.chief &&
      (report_.step == 0 || NobodyWantsReport())) {
    return AdvanceReported();
  }
  StopWaiting(&end_waiting_);
  if (!EpochIsUsable(state_, peers_.replies())) return AdvanceWithoutEpoch();
  if (!UseEpoch()) return;
  if (state_.phase() == STOPPING && report_.step == 0) {
    return AdvanceStopping();
  }
  AdvanceRunning();
}

// Hello to all, Register, Watch. False while one of the first two is missing.
bool SessionMachine::Connect() {
  GreetDuePeers();
  if (!peers_.AllGreeted()) {
    WaitFor(peers_.DescribeMissing());
    return false;
  }
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

void SessionMachine::GreetDuePeers() {
  for (const int ps_task : peers_.TakeDue(now_)) {
    actions_.push_back(SendHello{ps_task, peers_.takeover(ps_task)});
  }
}

void SessionMachine::Register() {
  register_in_flight_ = true;
  actions_.push_back(SendRegister{register_takeover_});
}

void SessionMachine::AdvanceWithoutEpoch() {
  entered_epoch_ = 0;
  granted_ = false;
  if (options_.chief) {
    busy_ = true;
    actions_.push_back(chief_.Start(state_, peers_.replies(), last_epoch_));
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

// Enters the committed epoch if that is not done. False after a failure.
bool SessionMachine::UseEpoch() {
  StopWaiting(&waiting_);
  if (state_.fingerprint() != options_.model_fingerprint) {
    ExitWith(kExitBadConfig,
             absl::StrFormat(
                 "the ps tasks hold another model (fingerprint %016x, this "
                 "training has %016x): use the same --training and --set on "
                 "every worker, or restart the ps tasks",
                 state_.fingerprint(), options_.model_fingerprint));
    return false;
  }
  if (entered_epoch_ == state_.model_epoch()) return true;
  // The number alone does not tell: when every ps has lost its memory before
  // the first checkpoint, epochs are counted from 1 again.
  std::vector<uint64_t> incarnations = IncarnationsOf(peers_.replies());
  const bool is_last =
      last_epoch_ == state_.model_epoch() && last_incarnations_ == incarnations;
  std::optional<DataPosition> position;
  if (!is_last) {
    const WorkerState* const self = FindWorker(state_, options_.self);
    position = self != nullptr ? self->position() : registered_position_;
    SayLostSteps(self != nullptr ? self->steps() : 0, incarnations[0]);
    report_ = {};
    // A save of another epoch does not end this one.
    final_done_ = completed_ = false;
    final_status_ = absl::OkStatus();
  }
  entered_epoch_ = last_epoch_ = state_.model_epoch();
  last_incarnations_ = incarnations;
  granted_ = false;
  refused_at_version_ = asked_version_ = -1;
  actions_.push_back(
      EnterEpoch{entered_epoch_, std::move(incarnations), std::move(position)});
  return true;
}

// Those that went with ps task 0. If another ps was lost, ps task 0 knows of
// it, and the chief says it.
void SessionMachine::SayLostSteps(int64_t kept, uint64_t first_ps_incarnation) {
  const bool is_another =
      last_epoch_ != 0 && last_incarnations_[0] != first_ps_incarnation;
  if (is_another && acknowledged_ > kept) {
    actions_.push_back(
        Say{DescribeLostSteps(options_.self, acknowledged_ - kept)});
  }
  acknowledged_ = kept;
  undecided_step_ = 0;
}

bool SessionMachine::InEpoch() const {
  return entered_epoch_ != 0 && entered_epoch_ == state_.model_epoch() &&
         EpochIsUsable(state_, peers_.replies());
}

// The epoch of the report is lost, and the chief, which would have to restore
// it, has ended.
bool SessionMachine::NobodyWantsReport() const {
  return !EpochIsUsable(state_, peers_.replies()) &&
         HasFinished(state_, options_.chief_task);
}

void SessionMachine::AskToSave() {
  const int64_t request = state_.save_requests();
  if (!options_.chief || entered_epoch_ == 0 ||
      request <= std::max(save_requests_seen_, state_.saves_answered())) {
    return;
  }
  save_requests_seen_ = request;
  actions_.push_back(SaveNow{request});
}

// The ps that asked has a few seconds.
void SessionMachine::On(const SaveReportLostEvent& event) {
  if (event.attempt >= kSaveReportAttempts) return;
  save_report_ =
      SendSaveReport{event.save_request, event.error, event.attempt + 1};
  save_report_at_ = now_ + RetryPause(event.attempt - 1);
}

void SessionMachine::RepeatSaveReport() {
  if (!save_report_.has_value() || now_ < save_report_at_) return;
  actions_.push_back(*std::exchange(save_report_, std::nullopt));
  save_report_at_ = absl::InfiniteFuture();
}

// ---- Small moves --------------------------------------------------------

void SessionMachine::Reconnect(const absl::Status& why) {
  if (ending_) return;
  entered_epoch_ = 0;
  granted_ = false;
  step_waiting_.Stop();
  end_waiting_.Stop();
  peers_.ResetAll();
  if (IsFenced(why) && !absl::StartsWith(why.message(), kFencedPrefix)) {
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
  if (!ending_ && absl::StartsWith(why.message(), kFencedPrefix)) {
    return ExitWith(kExitFailed, std::string(why.message()));
  }
  if (!ending_ && absl::IsInvalidArgument(why)) {
    if (busy_) return ExitWith(kExitBadConfig, std::string(why.message()));
    return FailRefused(why);
  }
  Reconnect(why);
}

// This task asks for something wrong, and would the next time.
void SessionMachine::FailRefused(const absl::Status& why) {
  Fail(kExitBadConfig, absl::StrCat(PsName(0, options_.ps_addresses[0]),
                                    " refused: ", why.message()));
}

void SessionMachine::AdoptState(const JobState& state) {
  if (state.state_version() >= state_.state_version()) state_ = state;
  SayIfFinishedBefore();
}

void SessionMachine::WaitFor(WaitReporter* waiting, const std::string& what) {
  std::string line = waiting->WaitFor(what, now_);
  // At the end of the job ps task 0 knows for whom to wait, but for a chief
  // that is lost.
  const bool is_end = state_.phase() == STOPPING && registered_with_ != 0 &&
                      peers_.AllGreeted() &&
                      MaySave(state_, options_.chief_task);
  const bool limited = !is_end && signal_ == 0;
  if (limited && now_ - waiting->since() >= options_.max_wait) {
    return ExitWith(
        kExitRetryable,
        absl::StrCat("gave up after waiting ",
                     absl::FormatDuration(options_.max_wait), " for ", what));
  }
  if (!line.empty()) actions_.push_back(Say{std::move(line)});
}

void SessionMachine::StopWaiting(WaitReporter* waiting) {
  if (waiting->Stop()) actions_.push_back(Say{"no longer waiting"});
}

void SessionMachine::RetryLater() {
  retry_at_ = now_ + RetryPause(failures_);
  ++failures_;
}

}  // namespace muster
