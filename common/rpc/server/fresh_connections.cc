#include "common/rpc/server/fresh_connections.h"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/peer_check.h"
#include "common/rpc/tensor_magic.h"

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

FreshConnections::FreshConnections(
    Protocol protocol, Reporter reporter, const Clock* clock,
    std::function<void(FileDescriptor)> take,
    std::function<void(FileDescriptor)> take_tensors)
    : protocol_(protocol),
      reporter_(std::move(reporter)),
      clock_(clock),
      take_(std::move(take)),
      take_tensors_(std::move(take_tensors)) {}

void FreshConnections::Add(FileDescriptor connection) {
  if (protocol_ == Protocol::kAny && take_tensors_ == nullptr) {
    return take_(std::move(connection));
  }
  if (waiting_.size() == kMost) CloseOldest();
  waiting_.push_back({std::move(connection), clock_->Now() + kPatience});
}

void FreshConnections::CloseOldest() {
  FileDescriptor oldest = std::move(waiting_.front().fd);
  waiting_.erase(waiting_.begin());
  // Its first byte may have come since the last look.
  if (Sort(std::move(oldest))) return;
  ++closed_silent_;
  Warn(absl::StrCat("closed the oldest of ", kMost,
                    " connections that have said nothing; ", closed_silent_,
                    " closed so by now"),
       &warned_of_silent_);
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

bool FreshConnections::Sort(FileDescriptor connection) {
  char first = 0;
  // Who looks whether the port is open says nothing, and goes.
  if (recv(connection.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) {
    return false;
  }
  SortByFirst(first, std::move(connection));
  return true;
}

void FreshConnections::SortByFirst(char first, FileDescriptor connection) {
  if (first == kTensorMagic.front()) {
    if (take_tensors_ != nullptr) return take_tensors_(std::move(connection));
    return Warn(
        "refused a connection for tensors: this task offers none (--link)",
        &warned_of_refused_);
  }
  if (protocol_ == Protocol::kPlaintext && first == kTlsHandshake) {
    Warn(
        "refused a client: it speaks TLS (--certs_dir), and this task does not",
        &warned_of_refused_);
  }
  if (protocol_ == Protocol::kTls && first == kHttp2Preface) {
    Warn(
        "refused a client: it speaks no TLS, and this task nothing else "
        "(--certs_dir)",
        &warned_of_refused_);
    return TellAndClose(connection);
  }
  if (protocol_ == Protocol::kTls && first == kHttpGet) {
    return TellAndClose(connection);
  }
  take_(std::move(connection));
}

void FreshConnections::Warn(absl::string_view line, absl::Time* last) {
  if (clock_->Now() - *last < kBetweenLines) return;
  *last = clock_->Now();
  reporter_.Warning(line);
}

}  // namespace muster
