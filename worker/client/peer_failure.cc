#include "worker/client/peer_failure.h"

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/rpc/connection_cause.h"

namespace muster {

absl::Status ExplainPeerFailure(const PeerName& peer,
                                const absl::Status& status) {
  const std::string where = absl::StrCat(peer.task, " at ", peer.address, ": ");
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat(
        where, "no answer in time (", EscapeForLog(status.message()), ")"));
  }
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  return absl::UnavailableError(
      absl::StrCat(where, ConnectionCause(status.message())));
}

}  // namespace muster
