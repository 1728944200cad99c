#include "worker/session/round_pauser.h"

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/rpc/call_table.h"
#include "worker/client/link/blocking_call.h"

namespace muster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);

// A hold ends after a second (StepRounds::kLongestHold): two that are late or
// lost do no harm.
constexpr absl::Duration kHoldOnAfter = absl::Milliseconds(300);

constexpr int kAttempts = 5;

// How a run ended, once it has. Shared with its callback.
struct RunEnd {
  absl::Mutex mu;
  bool has_ended ABSL_GUARDED_BY(mu) = false;
  absl::Status status ABSL_GUARDED_BY(mu);
};

}  // namespace

PauseRoundsRequest RoundPauser::MakeRequest(bool hold) const {
  PauseRoundsRequest request;
  *request.mutable_sender() = sender_;
  request.set_model_epoch(model_epoch_);
  request.set_pause(hold);
  return request;
}

absl::StatusOr<PauseRoundsReply> RoundPauser::Hold() {
  absl::StatusOr<PauseRoundsReply> reply =
      BlockingCall<PauseRoundsReply>(clock_, [&](auto done) {
        coordination_->Call(kPauseRoundsCall, MakeRequest(/*hold=*/true),
                            clock_.Now() + kCallTimeout, std::move(done));
      });
  absl::Status status = Annotate(reply.status(), "hold rounds");
  if (reply.ok() &&
      reply->token().round() != reply->state().global_step() + 1) {
    status = absl::InternalError(absl::StrCat(
        "hold rounds: the token is of round ", reply->token().round(),
        ", the state of global step ", reply->state().global_step(),
        "; wanted the round after it"));
  }
  if (status.ok()) return reply;
  // The answer may have been lost and not the question.
  Release();
  return status;
}

absl::Status RoundPauser::HoldOn(int64_t round) {
  ASSIGN_OR_RETURN(const PauseRoundsReply held, Hold());
  if (held.token().round() == round) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("hold round ", round,
                                         ": it was closed meanwhile, round ",
                                         held.token().round(), " is open"));
}

absl::Status RoundPauser::TryRunPaused(
    absl::FunctionRef<void(const StepToken&, Done)> run) {
  ASSIGN_OR_RETURN(const PauseRoundsReply held, Hold());
  const auto end = std::make_shared<RunEnd>();
  run(held.token(), [end](absl::Status status) {
    absl::MutexLock lock(&end->mu);
    end->status = std::move(status);
    end->has_ended = true;
  });
  const auto has_ended = [this, &end] {
    absl::MutexLock lock(&end->mu);
    return clock_.Await(&end->mu, absl::Condition(&end->has_ended),
                        kHoldOnAfter);
  };
  absl::Status is_held;
  while (!has_ended()) is_held.Update(HoldOn(held.token().round()));
  // It may have been lost since: the process may have stood still.
  is_held.Update(HoldOn(held.token().round()));
  Release();
  absl::MutexLock lock(&end->mu);
  RETURN_IF_ERROR(end->status);
  return is_held;
}

absl::Status RoundPauser::RunPaused(
    absl::FunctionRef<void(const StepToken&, Done)> run) {
  absl::Status status = TryRunPaused(run);
  for (int attempt = 1; attempt < kAttempts && absl::IsAborted(status);
       ++attempt) {
    status = TryRunPaused(run);
  }
  return status;
}

void RoundPauser::Release() {
  coordination_->Call(kPauseRoundsCall, MakeRequest(/*hold=*/false),
                      clock_.Now() + kCallTimeout,
                      [](const absl::StatusOr<PauseRoundsReply>&) {});
}

}  // namespace muster
