#ifndef WORKER_SESSION_ROUND_PAUSER_H_
#define WORKER_SESSION_ROUND_PAUSER_H_

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/rpc/link.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The chief's pause of synchronous replication: no round closes while it looks
// at all shards after the same update. One thread.
//
//   ASSIGN_OR_RETURN(const PauseRoundsReply held, pauser->Hold());
//   ... cut with held.token() ...
//   pauser->Release();
class RoundPauser {
 public:
  // `clock` and `coordination` outlive the pauser; the second also outlives the
  // answers to its calls. `sender` is the chief.
  RoundPauser(const Clock* clock, Link* coordination, const Sender& sender)
      : clock_(*clock), coordination_(coordination), sender_(sender) {}

  // Sets the epoch of the calls from here on.
  void Enter(int64_t model_epoch) { model_epoch_ = model_epoch; }

  // No round closes until Release, or for a second. The state is that of the
  // update before the token's round. Errors: those of the call; Internal if the
  // two do not belong together. After an error nothing is held.
  absl::StatusOr<PauseRoundsReply> Hold();

  // Does not wait: a lost message costs the rest of the second.
  void Release();

  // Holds the rounds while `run` is under way, however long that takes: it gets
  // the token, and calls `done` on any thread when it has ended. Begun anew, a
  // few times, if a round was closed meanwhile (the hold was lost): then what
  // it has seen may be of several updates. Errors: those of Hold and of `run`;
  // Aborted if each time a round was closed.
  using Done = std::function<void(absl::Status)>;
  absl::Status RunPaused(absl::FunctionRef<void(const StepToken&, Done)> run);

 private:
  PauseRoundsRequest MakeRequest(bool hold) const;
  absl::Status TryRunPaused(
      absl::FunctionRef<void(const StepToken&, Done)> run);
  // Goes on holding. Errors: those of Hold; Aborted if another round is open.
  absl::Status HoldOn(int64_t round);

  const Clock& clock_;
  Link* const coordination_;
  const Sender sender_;
  int64_t model_epoch_ = 0;
};

}  // namespace muster

#endif  // WORKER_SESSION_ROUND_PAUSER_H_
