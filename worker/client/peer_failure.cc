#include "worker/client/peer_failure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"

namespace muster {
namespace {

// In gRPC 1.51's message, "(1200000 vs. 1114112)" behind it.
constexpr absl::string_view kTooLarge = "message larger than max";

struct Cause {
  absl::string_view pattern;  // in gRPC 1.51's message
  absl::string_view words;
};

// The first match decides: a longer message may have several.
constexpr Cause kCauses[] = {
    {"DNS resolution failed",
     "the host name does not resolve; check the cluster's addresses"},
    {"Domain name not found",
     "the host name does not resolve; check the cluster's addresses"},
    {"Connection refused", "connection refused; nothing listens there yet"},
    {"No route to host", "no route to the host"},
    {"Network is unreachable", "the network is unreachable"},
    {"keepalive watchdog timeout",
     "the connection went silent; is the host up and the network whole?"},
    {"Connection timed out", "connecting timed out; is the host up?"},
    {"Ssl handshake failed", "the TLS handshake failed"},
    {"Connection reset by peer", "the peer reset the connection"},
    {"Broken pipe", "the peer closed the connection"},
    {"Socket closed", "the peer closed the connection"},
    {"GOAWAY", "the peer is going away"},
};

}  // namespace

absl::Status ExplainPeerFailure(const PeerName& peer,
                                const absl::Status& status) {
  const std::string where = absl::StrCat(peer.task, " at ", peer.address, ": ");
  const std::string words = EscapeForLog(status.message());
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(
        absl::StrCat(where, "no answer in time (", words, ")"));
  }
  // gRPC calls it a lack of room, which might pass.
  if (status.code() == absl::StatusCode::kResourceExhausted &&
      absl::StrContains(status.message(), kTooLarge)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "the training does not fit into a message (", words,
                     "); use fewer layers"));
  }
  if (status.code() != absl::StatusCode::kUnavailable) return status;
  for (const Cause& cause : kCauses) {
    if (absl::StrContains(status.message(), cause.pattern)) {
      return absl::UnavailableError(absl::StrCat(where, cause.words));
    }
  }
  return absl::UnavailableError(absl::StrCat(where, words));
}

}  // namespace muster
