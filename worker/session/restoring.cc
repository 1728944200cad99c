#include "worker/session/restoring.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/stopped_error.h"
#include "common/cluster/task_id.h"
#include "common/rpc/error_reason.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

// How often a shard with an unexpected epoch is asked again.
constexpr absl::Duration kAskAgain = absl::Seconds(1);

}  // namespace

// ---- Events -------------------------------------------------------------

void Restoring::On(const BeginEpochEvent& event) {
  core_.OnAnswered();
  if (event.reply.ok()) {
    core_.AdoptState(event.reply->state());
    return core_.DoAlone(chief_.OnBegun(*event.reply));
  }
  chief_.OnFailed();
  if (event.reply.status().code() == absl::StatusCode::kAborted) {
    // An earlier incarnation of the chief is not given up yet.
    core_.WaitFor(std::string(event.reply.status().message()));
    return core_.RetryLater();
  }
  core_.ReconnectOrYield(event.reply.status());
}

void Restoring::On(const LoadEvent& event) {
  core_.OnAnswered();
  if (event.model.ok()) return core_.DoAlone(chief_.OnLoaded(*event.model));
  chief_.OnFailed();
  const absl::Status& status = event.model.status();
  if (IsStopped(status)) return;
  if (event.checkpoint_unusable) {
    return core_.Fail({kExitBadCheckpoint, std::string(status.message())});
  }
  if (IsTransient(status) || IsFenced(status)) return core_.Reconnect(status);
  core_.Fail(
      {UnlessDamaged(status, kExitBadConfig), std::string(status.message())});
}

void Restoring::On(const CommitEvent& event) {
  core_.OnAnswered();
  if (!event.reply.ok()) {
    chief_.OnFailed();
    return core_.ReconnectOrYield(event.reply.status());
  }
  chief_.OnCommitted();
  core_.AdoptState(event.reply->state());
  core_.peers().SetModelEpoch(core_.state().model_epoch());
}

// ---- What is missing ----------------------------------------------------

void Restoring::Advance() {
  stepping_.LeaveEpoch();
  if (!core_.options().chief) return WaitForChief();
  const JobState& state = core_.state();
  const std::vector<HelloReply>& hellos = core_.peers().replies();
  if (CanResume(state, hellos)) return ResumeEpoch();
  core_.DoAlone(chief_.Start(state, hellos, stepping_.steps().last_epoch()));
}

bool Restoring::AdvanceStop() {
  const JobState& state = core_.state();
  const StopSpec& own = core_.options().goal.stop;
  if (!core_.options().chief || state.phase() != RUNNING || !state.has_stop() ||
      state.stop().SerializeAsString() == own.SerializeAsString()) {
    return false;
  }
  if (stepping_.ShardsHoldOwnModel()) {
    core_.DoAlone(chief_.Resume(state, core_.peers().replies()));
  }
  return true;
}

void Restoring::WaitForChief() {
  const JobState& state = core_.state();
  const std::string chief = TaskName(core_.options().chief_task);
  if (state.phase() == INITIAL) {
    return core_.WaitFor(
        absl::StrCat(chief,
                     core_.options().takes_any_worker
                         ? ", which is started with --task_index=0,"
                         : "",
                     " to initialize or restore the model"));
  }
  PeerTable& peers = core_.peers();
  for (int i = 0; i < peers.size(); ++i) {
    const HelloReply& hello = peers.replies()[i];
    const auto it = state.ps_incarnations().find(i);
    const bool same = it != state.ps_incarnations().end() &&
                      it->second == hello.ps_incarnation() &&
                      hello.state().model_epoch() <= state.model_epoch();
    if (!same) peers.Reset(i, core_.now() + kAskAgain);
  }
  core_.WaitFor(
      absl::StrCat(chief, " to restore the model: a ps was restarted"));
}

void Restoring::ResumeEpoch() {
  if (!stepping_.ShardsHoldOwnModel()) return;
  const int64_t step = core_.state().global_step();
  const int64_t saved_step = core_.options().saved_step;
  std::string line =
      absl::StrCat("going on from step ", step, ", which the ps tasks hold");
  if (saved_step >= 0 && saved_step != step) {
    absl::StrAppend(&line, "; --train_dir has step ", saved_step,
                    ", which is passed over");
  }
  core_.SayLine(std::move(line));
  core_.DoAlone(chief_.Resume(core_.state(), core_.peers().replies()));
}

}  // namespace muster
