#include "common/rpc/peer_check.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/file_descriptor.h"
#include "common/cluster/address.h"

namespace muster {
namespace {

// A question that most servers answer, and that harms none.
constexpr absl::string_view kQuestion = "GET / HTTP/1.0\r\n\r\n";
// A banner or the first line of an answer; more is not read.
constexpr size_t kMostBytes = 256;
constexpr size_t kMostShown = 80;

// In gRPC 1.51's message of a call that no connection could be made for; and in
// that, of one that did not get as far as to another program.
constexpr absl::string_view kConnectFailed =
    "failed to connect to all addresses";
constexpr absl::string_view kUnreached[] = {
    "Connection refused", "No route to host", "Network is unreachable",
    "Connection timed out"};
// In that of an answer by HTTP/2 that is none of gRPC.
constexpr absl::string_view kHttpStatus = "Received http2 header with status";

// A gRPC server, or another one of HTTP/2, that is none of Muster's: those send
// details with this code (status_conversion).
bool IsForeign(const grpc::Status& status) {
  return absl::StrContains(status.error_message(), kHttpStatus) ||
         (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_details().empty());
}

std::string NoPsTask(absl::string_view address, absl::string_view why) {
  return absl::StrCat("What listens at ", address,
                      " is no ps task of Muster (it ", why, ")");
}

// The first frame of every server of HTTP/2: SETTINGS, of stream 0.
bool IsHttp2(absl::string_view bytes) {
  constexpr absl::string_view kSettings("\x04\0\0\0\0\0", 6);
  return bytes.size() >= 9 && bytes.substr(3, kSettings.size()) == kSettings;
}

// A record of an alert or of a handshake.
bool IsTls(absl::string_view bytes) {
  return bytes.size() >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) &&
         bytes[1] == 0x03;
}

// Waits until the socket is ready for `events`, or failed.
bool AwaitSocket(const FileDescriptor& socket, int16_t events,
                 absl::Time give_up, const Clock& clock) {
  pollfd poll = {socket.get(), events, 0};
  const int64_t left_ms = absl::ToInt64Milliseconds(give_up - clock.Now());
  return ::poll(&poll, 1, static_cast<int>(std::max<int64_t>(0, left_ms))) > 0;
}

FileDescriptor Connect(const addrinfo& to, absl::Time give_up,
                       const Clock& clock) {
  FileDescriptor socket(::socket(to.ai_family,
                                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                 to.ai_protocol));
  if (!socket.valid()) return socket;
  connect(socket.get(), to.ai_addr, to.ai_addrlen);
  int error = 0;
  socklen_t size = sizeof(error);
  if (!AwaitSocket(socket, POLLOUT, give_up, clock) ||
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
      error != 0) {
    return FileDescriptor();
  }
  return socket;
}

FileDescriptor ConnectTo(const std::string& address, absl::Time give_up,
                         const Clock& clock) {
  const absl::StatusOr<Address> parsed = ParseAddress(address);
  if (!parsed.ok()) return FileDescriptor();
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(parsed->host.c_str(), absl::StrCat(parsed->port).c_str(),
                  &hints, &found) != 0) {
    return FileDescriptor();
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found,
                                                               &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor socket = Connect(*one, give_up, clock);
    if (socket.valid()) return socket;
  }
  return FileDescriptor();
}

PortAnswer AskPort(const std::string& address, const Clock& clock) {
  const absl::Time give_up = clock.Now() + PeerCheck::kPatience;
  PortAnswer answer;
  const FileDescriptor socket = ConnectTo(address, give_up, clock);
  answer.is_connected = socket.valid();
  if (!answer.is_connected) return answer;
  send(socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL);
  while (answer.bytes.size() < kMostBytes &&
         !absl::StrContains(answer.bytes, '\n') && !IsHttp2(answer.bytes) &&
         AwaitSocket(socket, POLLIN, give_up, clock)) {
    char bytes[kMostBytes];
    const ssize_t got = recv(socket.get(), bytes, sizeof(bytes), 0);
    answer.is_closed = got <= 0;
    if (answer.is_closed) break;
    answer.bytes.append(bytes, static_cast<size_t>(got));
  }
  return answer;
}

}  // namespace

std::string DescribeAnswer(absl::string_view address,
                           const PortAnswer& answer) {
  const absl::string_view bytes = answer.bytes;
  if (!answer.is_connected || IsHttp2(bytes) ||
      absl::StartsWith(bytes, kTlsAloneLine)) {
    return "";
  }
  if (IsTls(bytes)) {
    return NoPsTask(address, "answered as a TLS server of another kind");
  }
  if (!bytes.empty()) {
    const absl::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
    return NoPsTask(address, absl::StrCat("answered '",
                                          EscapeForLog(line, kMostShown), "'"));
  }
  if (answer.is_closed) {
    return NoPsTask(address,
                    "answered nothing and closed the connection, as a TLS "
                    "server of another kind does, or a forwarded port whose ps "
                    "is not up");
  }
  return absl::StrCat("What listens at ", address,
                      " takes connections and says nothing: a ps task that "
                      "stands still, or another program");
}

PeerCheck::PeerCheck(std::string address, const Clock* clock)
    : address_(std::move(address)), clock_(clock) {}

bool PeerCheck::IsReached(const grpc::Status& status) const {
  const std::string& message = status.error_message();
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return !has_answered_;
  }
  return absl::StrContains(message, kConnectFailed) &&
         std::none_of(std::begin(kUnreached), std::end(kUnreached),
                      [&message](absl::string_view cause) {
                        return absl::StrContains(message, cause);
                      });
}

std::string PeerCheck::Explain(const grpc::Status& status) {
  if (IsForeign(status)) {
    const std::string words = EscapeForLog(status.error_message(), kMostShown);
    const bool is_grpc = status.error_code() == grpc::StatusCode::UNIMPLEMENTED;
    return NoPsTask(
        address_, absl::StrCat("answered ",
                               is_grpc ? "UNIMPLEMENTED, as another gRPC server"
                                       : "by HTTP/2",
                               words.empty() ? "" : ": ", words));
  }
  if (!IsReached(status)) return "";
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = clock_->Now();
    if (now < asked_ + kBetween) return found_;
    asked_ = now;
  }
  std::string found = DescribeAnswer(address_, AskPort(address_, *clock_));
  absl::MutexLock lock(&mu_);
  found_ = std::move(found);
  return found_;
}

}  // namespace muster
