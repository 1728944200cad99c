#include "worker/session/connecting.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
#include "common/rpc/protocol.h"
#include "worker/client/call_status.h"
#include "worker/session/peer_table.h"

namespace muster {
namespace {

// How often ps task 0 is asked whether the job is over.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
// The longest text of a peer's version in a message.
constexpr size_t kMaxVersionChars = 40;

// A ps refuses another protocol too; one that is older may not know how.
absl::Status CheckProtocol(const HelloReply& reply, const std::string& ps) {
  if (reply.protocol_version() == kProtocolVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      ps, " speaks protocol ", reply.protocol_version(), " (version '",
      absl::CHexEscape(reply.muster_version().substr(0, kMaxVersionChars)),
      "'), this worker speaks protocol ", kProtocolVersion, " (version '",
      kMusterVersion, "'); ", kOtherProtocolAdvice));
}

// A ps of protocol 6 or before refuses this one without a word of what to do.
std::string WithAdvice(std::string refusal) {
  const bool lacks_advice = absl::StrContains(refusal, "speaks protocol") &&
                            !absl::StrContains(refusal, kOtherProtocolAdvice);
  if (lacks_advice) absl::StrAppend(&refusal, "; ", kOtherProtocolAdvice);
  return refusal;
}

}  // namespace

// ---- Hello --------------------------------------------------------------

void Connecting::On(const HelloEvent& event) {
  core_.peers().OnReply(event.ps_task, event.reply, core_.now());
  const std::string ps =
      PsName(event.ps_task, core_.options().ps_addresses[event.ps_task]);
  if (event.reply.ok()) {
    const absl::Status same = CheckProtocol(*event.reply, ps);
    if (!same.ok()) {
      return core_.ExitWith({kExitBadConfig, std::string(same.message())});
    }
    if (event.reply->takeover() != 0) return;  // not greeted yet
    if (event.ps_task == 0 &&
        event.reply->ps_incarnation() != core_.registered_with()) {
      core_.ForgetRegistration();
    }
    return;
  }
  const absl::Status& status = event.reply.status();
  if (core_.end().is_leaving() || IsTransient(status)) return;
  core_.ExitWith(ExitOfRefusal(
      status, WithAdvice(absl::StrCat(
                  ps, " refused: ", WithoutPsName(status.message(), ps)))));
}

// Before this task replaces another start of itself, which may be another
// job's.
bool Connecting::MayTakeOver() {
  if (!core_.options().asks_before_takeover || may_take_over_ ||
      !core_.peers().WantsTakeover()) {
    return true;
  }
  if (!register_in_flight_ && !core_.Pause()) Ask();
  core_.WaitFor(absl::StrCat(core_.first_ps(),
                             " to say whether this task may replace another "
                             "start of it"));
  return false;
}

void Connecting::WaitForPs() {
  const PeerTable& peers = core_.peers();
  const SessionCore::Options& options = core_.options();
  const std::string missing = peers.DescribeMissing();
  // While one of them is there, the others may only be late; but whoever knows
  // that the run is finished asks ps task 0 alone.
  const bool may_be_late = options.finished.empty() || options.own_ps >= 0
                               ? peers.IsAnyGreetedBut(options.own_ps)
                               : peers.IsGreeted(0);
  const absl::Duration patience =
      may_be_late ? absl::InfiniteDuration()
                  : core_.end().PatienceForPs(core_.state());
  if (patience < absl::InfiniteDuration() &&
      core_.now() >=
          core_.waiting_since() + std::min(patience, options.max_wait)) {
    core_.SayLine(core_.end().DescribeGonePs(core_.state(), missing));
    return core_.ExitWith(core_.end().ExitWithoutPs(core_.state()));
  }
  core_.WaitFor(missing);
  AskForEnd();
}

// Ps task 0 leaves last, and knows whether the job is over.
void Connecting::AskForEnd() {
  if (core_.exited() || !core_.peers().IsGreeted(0) || register_in_flight_) {
    return;
  }
  // At the start the others may only be late.
  if (ask_at_ == absl::InfiniteFuture()) {
    ask_at_ = was_member_ ? core_.now() : core_.now() + kAskAgain;
  }
  if (core_.now() < ask_at_) return;
  ask_at_ = core_.now() + kAskAgain;
  Ask();
}

void Connecting::Ask() {
  register_in_flight_ = is_asking_ = true;
  SendRegister question;
  question.asks_only = true;
  core_.Do(question);
}

void Connecting::OnAsked(const absl::StatusOr<RegisterReply>& reply) {
  may_take_over_ = reply.ok();
  const absl::Status& status = reply.status();
  if (IsTransient(status)) return core_.RetryLater();
  if (!status.ok()) {
    core_.ExitWith(ExitOfRefusal(status));
  } else if (!core_.peers().AllGreeted() && reply->state().phase() == DONE &&
             !reply->state().may_go_on()) {
    core_.ReplaceState(reply->state());
  }
}

// ---- Register and Watch -------------------------------------------------

bool Connecting::On(const RegisterEvent& event) {
  register_in_flight_ = false;
  if (std::exchange(is_asking_, false)) {
    OnAsked(event.reply);
    return false;
  }
  const bool confirmed = register_takeover_ != 0;
  register_takeover_ = event.reply.ok() ? event.reply->takeover() : 0;
  // Somebody else takes over at the same time.
  if (confirmed && register_takeover_ != 0) core_.RetryLater();
  const absl::Status& status = event.reply.status();
  if (core_.end().is_leaving()) {
    OnRegisteredToFinish(status);
  } else if (status.ok()) {
    return OnRegistered(*event.reply);
  } else if (IsTransient(status)) {
    core_.Reconnect(status);
  } else if (IsReplaced(status)) {
    core_.ReconnectOrYield(status);
  } else {
    core_.ExitWith(ExitOfRefusal(status));
  }
  return false;
}

bool Connecting::OnRegistered(const RegisterReply& reply) {
  if (!core_.peers().AllGreeted() || register_takeover_ != 0) return false;
  goes_on_ = WantsToGoOn(reply.state());
  if (goes_on_) return false;
  was_member_ = true;
  core_.OnRegistered(reply.state());
  return true;
}

// The job is over, and this training wants more of it.
bool Connecting::WantsToGoOn(const JobState& state) const {
  return !goes_on_ && !was_member_ && state.phase() == DONE &&
         state.may_go_on() && !IsReached(core_.options().goal, state);
}

void Connecting::RegisterToFinish() {
  register_in_flight_ = true;
  core_.DoAlone(SendRegister{register_takeover_, goes_on_});
}

void Connecting::OnRegisteredToFinish(const absl::Status& status) {
  core_.OnAnswered();
  const bool must_confirm = register_takeover_ != 0;
  if (auto exit = core_.end().OnRegisteredAgain(status, must_confirm)) {
    return core_.ExitWith(*std::move(exit));
  }
  if (!status.ok()) core_.RetryLater();
}

void Connecting::On(const WatchEvent& event) {
  if (event.state.ok()) return core_.AdoptState(*event.state);
  watching_ = false;
  core_.ReconnectOrYield(event.state.status());
}

// ---- What is missing ----------------------------------------------------

bool Connecting::Advance() {
  if (!MayTakeOver()) return false;
  core_.GreetDuePeers();
  if (!core_.peers().AllGreeted()) {
    WaitForPs();
    return false;
  }
  ask_at_ = absl::InfiniteFuture();
  if (core_.registered_with() == 0) {
    if (!register_in_flight_ && !core_.Pause()) {
      register_in_flight_ = true;
      core_.Do(SendRegister{register_takeover_, goes_on_});
    }
    const std::string ps_0 = core_.first_ps();
    const std::string cause = WithoutPsName(core_.reconnect_cause(), ps_0);
    core_.WaitFor(absl::StrCat(ps_0, " to register this task",
                               cause.empty() ? "" : " (", cause,
                               cause.empty() ? "" : ")"));
    return false;
  }
  if (!watching_ && !core_.Pause()) {
    watching_ = true;
    core_.Do(SendWatch{core_.state().state_version()});
  }
  return true;
}

}  // namespace muster
