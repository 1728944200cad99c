#include "common/rpc/server/fresh_connections.h"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/peer_check.h"

namespace muster {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(10);

// A TLS record of a handshake begins so, the preface of HTTP/2 with "PRI", a
// question of PeerCheck or of a browser with "GET".
constexpr char kTlsHandshake = 0x16;
constexpr char kHttp2Preface = 'P';
constexpr char kHttpGet = 'G';

constexpr absl::string_view kWantsTls =
    "this task speaks TLS alone; give the other one --certs_dir, too";

// As other servers have it whose port is for TLS. gRPC's client knows such an
// answer; the text of an HTTP/2 GOAWAY it would drop.
std::string Farewell() {
  return absl::StrCat(kTlsAloneLine,
                      "\r\nContent-Type: text/plain\r\n"
                      "Connection: close\r\nContent-Length: ",
                      kWantsTls.size(), "\r\n\r\n", kWantsTls);
}

// Best effort: who is gone need not be told.
void TellAndClose(const FileDescriptor& connection) {
  const std::string farewell = Farewell();
  send(connection.get(), farewell.data(), farewell.size(),
       MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(connection.get(), SHUT_WR);
  // Bytes that are unread at the close would take the farewell back.
  char rest[4096];
  while (recv(connection.get(), rest, sizeof(rest), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace

FreshConnections::FreshConnections(Protocol protocol, Reporter reporter,
                                   const Clock* clock,
                                   std::function<void(FileDescriptor)> take)
    : protocol_(protocol),
      reporter_(std::move(reporter)),
      clock_(clock),
      take_(std::move(take)) {}

void FreshConnections::Add(FileDescriptor connection) {
  if (protocol_ == Protocol::kAny || waiting_.size() >= kMost) {
    return take_(std::move(connection));
  }
  waiting_.push_back({std::move(connection), clock_->Now() + kPatience});
}

void FreshConnections::AppendTo(std::vector<pollfd>* polls) const {
  for (const Connection& one : waiting_) {
    polls->push_back({one.fd.get(), POLLIN, 0});
  }
}

void FreshConnections::Look(absl::Span<const pollfd> polls) {
  const absl::Time now = clock_->Now();
  std::vector<Connection> left;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (i < polls.size() && polls[i].revents != 0) {
      Sort(std::move(waiting_[i].fd));
    } else if (now < waiting_[i].give_up) {
      left.push_back(std::move(waiting_[i]));
    }
  }
  waiting_ = std::move(left);
}

void FreshConnections::Sort(FileDescriptor connection) {
  char first = 0;
  // Who looks whether the port is open says nothing, and goes.
  if (recv(connection.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) return;
  if (protocol_ == Protocol::kPlaintext && first == kTlsHandshake) {
    Say("refused a client: it speaks TLS (--certs_dir), and this task does "
        "not");
  }
  if (protocol_ == Protocol::kTls && first == kHttp2Preface) {
    Say("refused a client: it speaks no TLS, and this task nothing else "
        "(--certs_dir)");
    return TellAndClose(connection);
  }
  if (protocol_ == Protocol::kTls && first == kHttpGet) {
    return TellAndClose(connection);
  }
  take_(std::move(connection));
}

void FreshConnections::Say(absl::string_view line) {
  if (clock_->Now() - said_ < kBetweenLines) return;
  said_ = clock_->Now();
  reporter_.Warning(line);
}

}  // namespace muster
