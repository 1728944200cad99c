#include "common/rpc/connection_cause.h"

#include "absl/strings/match.h"
#include "common/base/escape.h"

namespace muster {
namespace {

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

std::string ConnectionCause(absl::string_view message) {
  for (const Cause& cause : kCauses) {
    if (absl::StrContains(message, cause.pattern)) {
      return std::string(cause.words);
    }
  }
  return EscapeForLog(message);
}

}  // namespace muster
