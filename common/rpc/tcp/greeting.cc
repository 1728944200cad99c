#include "common/rpc/tcp/greeting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/loopback_sockets.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/tensor_magic.h"

namespace muster {
namespace {

// The times of gRPC's client (channel_settings.cc).
constexpr int kKeepaliveSeconds = 10;
constexpr int kKeepaliveTimeoutSeconds = 5;

void SetOption(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof(value));
}

}  // namespace

void SetUpTensorSocket(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveTimeoutSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 1);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
            1000 * (kKeepaliveSeconds + kKeepaliveTimeoutSeconds));
  UnpaceLoopback(fd);
}

AcceptedGreeting::AcceptedGreeting(FileDescriptor socket, Open open)
    : fd_(socket.get()), open_(std::move(open)), socket_(std::move(socket)) {}

absl::StatusOr<bool> AcceptedGreeting::Proceed() {
  if (channel_ == nullptr) {
    ASSIGN_OR_RETURN(channel_, open_(std::move(socket_)));
  }
  if (magic_.size() < kTensorMagic.size()) {
    ASSIGN_OR_RETURN(const bool is_whole, ReadMagic());
    if (!is_whole) return false;
  }
  ASSIGN_OR_RETURN(const bool is_over, channel_->Handshake());
  if (!is_over) return false;
  return ReadToken();
}

bool AcceptedGreeting::wants_to_send() const {
  return channel_ != nullptr && channel_->wants_to_send();
}

absl::StatusOr<bool> AcceptedGreeting::ReadMagic() {
  char bytes[kTensorMagic.size()];
  const ssize_t received =
      recv(fd_, bytes, sizeof(bytes) - magic_.size(), MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (received <= 0) {
    return absl::UnavailableError("the peer closed the connection");
  }
  magic_.append(bytes, received);
  if (magic_ != kTensorMagic.substr(0, magic_.size())) {
    return absl::InvalidArgumentError(
        "its first bytes are not those of a connection for tensors");
  }
  return magic_.size() == kTensorMagic.size();
}

absl::StatusOr<bool> AcceptedGreeting::ReadToken() {
  while (token_.size() < kTensorTokenBytes) {
    char bytes[kTensorTokenBytes];
    const iovec piece = {bytes, kTensorTokenBytes - token_.size()};
    ASSIGN_OR_RETURN(const size_t received,
                     channel_->Receive(absl::MakeConstSpan(&piece, 1)));
    if (received == 0) return false;
    token_.append(bytes, received);
  }
  return true;
}

void AddWelcome(const absl::Status& status, FrameSender* sender) {
  FrameHeader header;
  header.kind = static_cast<uint32_t>(status.code());
  sender->Add(header, status.ok() ? "" : StatusToBytes(status), absl::Cord());
}

}  // namespace muster
