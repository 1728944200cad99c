#include "worker/round_holder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/blocking_call.h"

namespace muster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);

}  // namespace

HoldRoundsRequest RoundHolder::MakeRequest(bool hold) const {
  HoldRoundsRequest request;
  *request.mutable_sender() = sender_;
  request.set_model_epoch(model_epoch_);
  request.set_hold(hold);
  return request;
}

absl::StatusOr<HoldRoundsReply> RoundHolder::Hold() {
  absl::StatusOr<HoldRoundsReply> reply =
      BlockingCall<HoldRoundsReply>(clock_, [&](auto done) {
        coordination_->HoldRounds(MakeRequest(/*hold=*/true),
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

void RoundHolder::Release() {
  coordination_->HoldRounds(MakeRequest(/*hold=*/false),
                            clock_.Now() + kCallTimeout,
                            [](const absl::StatusOr<HoldRoundsReply>&) {});
}

}  // namespace muster
