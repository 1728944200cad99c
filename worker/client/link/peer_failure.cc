#include "worker/client/link/peer_failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/rpc/connection_cause.h"

namespace muster {
namespace {

// In gRPC 1.51's message, "(1200000 vs. 1114112)" behind it.
constexpr absl::string_view kTooLarge = "message larger than max";

}  // namespace

absl::Status ExplainPeerFailure(const PeerName& peer,
                                const absl::Status& status) {
  const std::string where = absl::StrCat(peer.task, " at ", peer.address, ": ");
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(absl::StrCat(
        where, "no answer in time (", EscapeForLog(status.message()), ")"));
  }
  // gRPC calls it a lack of room, which might pass.
  if (status.code() == absl::StatusCode::kResourceExhausted &&
      absl::StrContains(status.message(), kTooLarge)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "the training does not fit into a message (",
                     EscapeForLog(status.message()), "); use fewer layers"));
  }
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  return absl::UnavailableError(
      absl::StrCat(where, ConnectionCause(status.message())));
}

}  // namespace muster
