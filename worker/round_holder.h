#ifndef WORKER_ROUND_HOLDER_H_
#define WORKER_ROUND_HOLDER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/rpc/coordination_link.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// Synchronous replication: keeps rounds from closing while the chief looks at
// all shards after the same update. One thread.
//
//   ASSIGN_OR_RETURN(const HoldRoundsReply held, holder->Hold());
//   ... pull or cut with held.token() ...
//   holder->Release();
class RoundHolder {
 public:
  // `clock` and `coordination` outlive the holder; the second also outlives the
  // answers to its calls. `sender` is the chief.
  RoundHolder(const Clock* clock, CoordinationLink* coordination,
              const Sender& sender)
      : clock_(*clock), coordination_(coordination), sender_(sender) {}

  // Of the calls from here on.
  void Enter(int64_t model_epoch) { model_epoch_ = model_epoch; }

  // No round closes until Release, or for a second. The state is that of the
  // update before the token's round. Errors: those of the call; Internal if the
  // two do not belong together. After an error nothing is held.
  absl::StatusOr<HoldRoundsReply> Hold();

  // Does not wait: a lost message costs the rest of the second.
  void Release();

 private:
  HoldRoundsRequest MakeRequest(bool hold) const;

  const Clock& clock_;
  CoordinationLink* const coordination_;
  const Sender sender_;
  int64_t model_epoch_ = 0;
};

}  // namespace muster

#endif  // WORKER_ROUND_HOLDER_H_
