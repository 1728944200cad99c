#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/address.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/tcp/frame_header.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tensor_magic.h"

namespace muster {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Bytes of another program's answer that are shown.
constexpr size_t kShownBytes = 60;

// One attempt: everything that may wait, within the patience of a dial.
class Dialling {
 public:
  explicit Dialling(const TensorDial& dial)
      : dial_(dial), give_up_(SystemClock()->Now() + dial.patience) {}

  absl::StatusOr<std::unique_ptr<ByteChannel>> Run() {
    ASSIGN_OR_RETURN(FileDescriptor socket, Connect());
    SetUpTensorSocket(socket.get());
    RETURN_IF_ERROR(SendMagic(socket.get()));
    ASSIGN_OR_RETURN(std::unique_ptr<ByteChannel> channel,
                     dial_.open(std::move(socket)));
    RETURN_IF_ERROR(ShakeHands(channel.get()));
    RETURN_IF_ERROR(SendToken(channel.get()));
    RETURN_IF_ERROR(AwaitWelcome(channel.get()));
    return channel;
  }

 private:
  absl::Status Error(absl::StatusCode code, absl::string_view words) const {
    return absl::Status(
        code, absl::StrCat(dial_.task, " at ", dial_.address, ": ", words));
  }

  // Waits until the socket can be written to, or read. `silence`: what the
  // error says if it cannot.
  absl::Status Await(int fd, bool to_send, absl::string_view silence) {
    pollfd polls[] = {{fd, static_cast<int16_t>(to_send ? POLLOUT : POLLIN), 0},
                      {dial_.stop_fd, POLLIN, 0}};
    for (;;) {
      const absl::Duration left = give_up_ - SystemClock()->Now();
      if (left <= absl::ZeroDuration()) {
        return Error(absl::StatusCode::kDeadlineExceeded, silence);
      }
      const int left_ms = static_cast<int>(
          absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
      const int ready = poll(polls, 2, left_ms);
      if (polls[1].revents != 0) {
        return absl::CancelledError("the link to the ps is closing");
      }
      if (ready > 0) return absl::OkStatus();
    }
  }

  absl::StatusOr<FileDescriptor> Connect() {
    ASSIGN_OR_RETURN(const Address address, ParseAddress(dial_.address));
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error =
        getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(),
                    &hints, &found);
    if (error != 0) {
      return Error(absl::StatusCode::kUnavailable, gai_strerror(error));
    }
    const Addresses addresses(found, &freeaddrinfo);
    absl::Status failed = Error(absl::StatusCode::kUnavailable, "no address");
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      absl::StatusOr<FileDescriptor> socket = ConnectTo(*one);
      if (socket.ok() || absl::IsCancelled(socket.status())) return socket;
      failed = socket.status();
    }
    return failed;
  }

  absl::StatusOr<FileDescriptor> ConnectTo(const addrinfo& address) {
    FileDescriptor fd(socket(address.ai_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                             address.ai_protocol));
    if (!fd.valid()) {
      return Error(absl::StatusCode::kResourceExhausted, strerror(errno));
    }
    if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
    if (errno == EINPROGRESS) {
      RETURN_IF_ERROR(
          Await(fd.get(), /*to_send=*/true, "no connection in time"));
      socklen_t size = sizeof(errno);
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &errno, &size);
      if (errno == 0) return fd;
    }
    return Error(absl::StatusCode::kUnavailable,
                 absl::StrCat("connect: ", strerror(errno)));
  }

  // A socket without any bytes takes these.
  absl::Status SendMagic(int fd) {
    if (send(fd, kTensorMagic.data(), kTensorMagic.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(kTensorMagic.size())) {
      return absl::OkStatus();
    }
    return Error(absl::StatusCode::kUnavailable,
                 absl::StrCat("send: ", strerror(errno)));
  }

  absl::Status ShakeHands(ByteChannel* channel) {
    for (;;) {
      const absl::StatusOr<bool> is_over = channel->Handshake();
      if (!is_over.ok()) {
        return Error(is_over.status().code(), is_over.status().message());
      }
      if (*is_over) return absl::OkStatus();
      RETURN_IF_ERROR(Await(channel->fd(), channel->wants_to_send(), kSilence));
    }
  }

  // What a channel says of one who ends the connection, or is not believed. A
  // ps that dies just now ends it, too: another attempt may find the next one.
  absl::Status Refused(const absl::Status& status) const {
    if (!absl::IsUnavailable(status)) {
      return Error(status.code(), status.message());
    }
    return Error(
        absl::StatusCode::kUnavailable,
        absl::StrCat("it takes no connection for tensors (", status.message(),
                     "): a proxy between, or another program?"));
  }

  absl::Status SendToken(ByteChannel* channel) {
    const iovec token = {const_cast<char*>(dial_.token.data()),
                         dial_.token.size()};
    const absl::StatusOr<size_t> sent =
        channel->Send(absl::MakeConstSpan(&token, 1));
    if (!sent.ok()) return Refused(sent.status());
    const absl::StatusOr<bool> flushed = channel->Flush();
    if (!flushed.ok()) return Refused(flushed.status());
    if (*sent == dial_.token.size() && *flushed) return absl::OkStatus();
    return Error(absl::StatusCode::kUnavailable, "the socket takes no bytes");
  }

  // Appends `size` bytes to `bytes`. At the peer's end: fewer.
  absl::Status Read(ByteChannel* channel, size_t size, std::string* bytes) {
    const size_t end = bytes->size() + size;
    std::vector<char> memory(size);
    while (bytes->size() < end) {
      const iovec piece = {memory.data(), end - bytes->size()};
      const absl::StatusOr<size_t> received =
          channel->Receive(absl::MakeConstSpan(&piece, 1));
      if (!received.ok() && !bytes->empty()) return absl::OkStatus();
      if (!received.ok()) return Refused(received.status());
      bytes->append(memory.data(), *received);
      if (*received > 0) continue;
      RETURN_IF_ERROR(Await(channel->fd(), channel->wants_to_send(), kSilence));
    }
    return absl::OkStatus();
  }

  absl::Status AwaitWelcome(ByteChannel* channel) {
    std::string bytes;
    RETURN_IF_ERROR(Read(channel, kFrameHeaderBytes, &bytes));
    const absl::StatusOr<FrameHeader> header =
        bytes.size() == kFrameHeaderBytes
            ? DecodeFrameHeader(bytes)
            : absl::InvalidArgumentError("too short");
    if (!header.ok() || header->data_bytes > 0) {
      return Error(
          absl::StatusCode::kFailedPrecondition,
          absl::StrCat("what answers a connection for tensors is no ps task of "
                       "Muster, or a proxy between (it answered '",
                       EscapeForLog(bytes.substr(0, kShownBytes)), "')"));
    }
    std::string fields;
    if (header->fields_bytes > 0) {
      RETURN_IF_ERROR(Read(channel, header->fields_bytes, &fields));
    }
    if (header->kind == 0) return absl::OkStatus();
    const absl::Status refusal = StatusFromBytes(fields);
    return Error(refusal.code(), refusal.message());
  }

  static constexpr absl::string_view kSilence =
      "it has accepted a connection for tensors and says nothing";

  const TensorDial& dial_;
  const absl::Time give_up_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteChannel>> DialForTensors(
    const TensorDial& dial) {
  return Dialling(dial).Run();
}

}  // namespace muster
