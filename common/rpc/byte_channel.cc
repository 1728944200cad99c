#include "common/rpc/byte_channel.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

class PlainChannel : public ByteChannel {
 public:
  explicit PlainChannel(FileDescriptor socket) : socket_(std::move(socket)) {
    fcntl(fd(), F_SETFL, fcntl(fd(), F_GETFL) | O_NONBLOCK);
  }

  int fd() const override { return socket_.get(); }
  bool is_duplex() const override { return true; }
  absl::StatusOr<bool> Handshake() override { return true; }

  absl::StatusOr<size_t> Receive(absl::Span<const iovec> pieces) override {
    msghdr message = MessageOf(pieces);
    const ssize_t received = recvmsg(fd(), &message, 0);
    if (received == 0) {
      return absl::UnavailableError("the peer closed the connection");
    }
    return Moved(received);
  }
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces) override {
    const msghdr message = MessageOf(pieces);
    return Moved(sendmsg(fd(), &message, MSG_NOSIGNAL));
  }
  absl::StatusOr<bool> Flush() override { return true; }

  bool has_received() const override { return false; }
  bool wants_to_send() const override { return false; }
  std::string PeerCertificate() const override { return ""; }

 private:
  static msghdr MessageOf(absl::Span<const iovec> pieces) {
    msghdr message = {};
    // The system only reads them.
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = std::min<size_t>(pieces.size(), IOV_MAX);
    return message;
  }
  static absl::StatusOr<size_t> Moved(ssize_t moved) {
    if (moved >= 0) return static_cast<size_t>(moved);
    if (errno == EAGAIN || errno == EINTR) return 0;
    return absl::UnavailableError(
        absl::StrCat("the connection is broken: ", strerror(errno)));
  }

  const FileDescriptor socket_;
};

}  // namespace

std::unique_ptr<ByteChannel> MakePlainChannel(FileDescriptor socket) {
  return std::make_unique<PlainChannel>(std::move(socket));
}

}  // namespace muster
