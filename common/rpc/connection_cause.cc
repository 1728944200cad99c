#include "common/rpc/connection_cause.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"

namespace muster {
namespace {

struct Cause {
  absl::string_view pattern;  // in gRPC 1.51's message
  absl::string_view words;
};

// The first match decides: a longer message may have several.
constexpr Cause kCauses[] = {
    {"Trying to connect an http1.x server",
     "the peer speaks TLS alone, and this task does not: give it --certs_dir"},
    {"wrong version number",
     "the peer speaks no TLS, and this task does: one has --certs_dir and the "
     "other has not"},
    {"Failed parsing HTTP/2",
     "what listens there does not speak gRPC; check the cluster's addresses"},
    {"DNS resolution failed",
     "the host name does not resolve; check the cluster's addresses"},
    {"Domain name not found",
     "the host name does not resolve; check the cluster's addresses"},
    {"Connection refused", "connection refused; nothing listens there yet"},
    {"No route to host", "no route to the host"},
    {"Network is unreachable", "the network is unreachable"},
    {"keepalive watchdog timeout",
     "the connection went silent; is the host up and the network whole?"},
    {"tcp handshaker shutdown", "connecting was broken off"},
    {"Connection timed out", "connecting timed out; is the host up?"},
    {"Tls handshake failed", "the TLS handshake failed"},
    {"failed to connect to all addresses; last error: UNAVAILABLE",
     "the peer closed the new connection: it refuses this task's certificate, "
     "or one has --certs_dir and the other has not; its log says which"},
    {"Connection reset by peer", "the peer reset the connection"},
    {"Broken pipe", "the peer closed the connection"},
    {"Socket closed", "the peer closed the connection"},
    {"GOAWAY", "the peer is going away"},
};

// Before the words of PeerTrust (common/tls).
constexpr absl::string_view kRefusedPeer =
    "Custom verification check failed with error: UNAUTHENTICATED: ";

}  // namespace

std::string ConnectionCause(absl::string_view message) {
  const size_t refused = message.find(kRefusedPeer);
  if (refused != absl::string_view::npos) {
    message.remove_prefix(refused + kRefusedPeer.size());
    return absl::StrCat("TLS: refused it: ", EscapeForLog(message));
  }
  for (const Cause& cause : kCauses) {
    if (absl::StrContains(message, cause.pattern)) {
      return std::string(cause.words);
    }
  }
  return EscapeForLog(message);
}

}  // namespace muster
