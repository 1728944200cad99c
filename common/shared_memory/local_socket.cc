#include "common/shared_memory/local_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Connections that wait to be accepted.
constexpr int kBacklog = 64;

absl::Status Failed(const char* what, int error) {
  const std::string text =
      absl::StrCat("local socket: ", what, ": ", std::strerror(error));
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return absl::ResourceExhaustedError(text);
    case ECONNREFUSED:
      return absl::NotFoundError(text);
    default:
      return absl::UnavailableError(text);
  }
}

struct Address {
  sockaddr_un un = {};
  socklen_t size = 0;
};

// An abstract name: a NUL, and then its bytes without an end.
absl::StatusOr<Address> AbstractAddress(absl::string_view name) {
  Address address;
  if (name.empty() || name.size() >= sizeof(address.un.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("local socket: a name of ", name.size(),
                     " bytes; wanted 1 to ", sizeof(address.un.sun_path) - 1));
  }
  address.un.sun_family = AF_UNIX;
  std::memcpy(address.un.sun_path + 1, name.data(), name.size());
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::StatusOr<FileDescriptor> NewSocket() {
  FileDescriptor socket(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return Failed("socket", errno);
  return socket;
}

// The first descriptor of a message; closes the others.
FileDescriptor TakeDescriptor(msghdr* message) {
  FileDescriptor first;
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr;
       c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      FileDescriptor taken(fd);
      if (!first.valid()) first = std::move(taken);
    }
  }
  return first;
}

absl::Status AwaitPacket(const FileDescriptor& socket, absl::Duration limit) {
  pollfd poll = {socket.get(), POLLIN, 0};
  const int limit_ms = static_cast<int>(absl::ToInt64Milliseconds(limit));
  int ready = 0;
  // A signal, or a process that was stopped for a while, is no failure.
  do {
    ready = ::poll(&poll, 1, limit_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) return absl::OkStatus();
  if (ready < 0) return Failed("poll", errno);
  return absl::DeadlineExceededError(absl::StrCat(
      "local socket: the peer sent nothing in ", absl::FormatDuration(limit)));
}

}  // namespace

absl::StatusOr<FileDescriptor> ListenLocal(absl::string_view name) {
  ASSIGN_OR_RETURN(const Address address, AbstractAddress(name));
  ASSIGN_OR_RETURN(FileDescriptor socket, NewSocket());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.un),
           address.size) != 0) {
    return Failed("bind", errno);
  }
  if (listen(socket.get(), kBacklog) != 0) return Failed("listen", errno);
  return socket;
}

absl::StatusOr<FileDescriptor> ConnectLocal(absl::string_view name) {
  ASSIGN_OR_RETURN(const Address address, AbstractAddress(name));
  ASSIGN_OR_RETURN(FileDescriptor socket, NewSocket());
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.un),
              address.size) != 0) {
    return Failed("connect", errno);
  }
  return socket;
}

absl::Status CheckPeerUser(const FileDescriptor& socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("local socket: SO_PEERCRED: ", std::strerror(errno)));
  }
  if (peer.uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("local socket: the peer runs as user ", peer.uid,
                   "; wanted ", geteuid(), ", as this process"));
}

absl::Status SendPacket(const FileDescriptor& socket, absl::string_view bytes,
                        int fd) {
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof(int));
  }
  if (sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return absl::UnavailableError(
        absl::StrCat("local socket: send: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Packet> ReceivePacket(const FileDescriptor& socket,
                                     size_t max_bytes, absl::Duration limit) {
  RETURN_IF_ERROR(AwaitPacket(socket, limit));
  Packet packet;
  packet.bytes.resize(max_bytes);
  iovec piece = {packet.bytes.data(), max_bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t received =
      recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received < 0) return Failed("receive", errno);
  packet.fd = TakeDescriptor(&message);
  if (received == 0) {
    return absl::UnavailableError("local socket: the peer closed it");
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "local socket: a packet of more than ", max_bytes, " bytes"));
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && !packet.fd.valid()) {
    return absl::ResourceExhaustedError(
        "local socket: no file descriptor is left for what the peer sent");
  }
  packet.bytes.resize(static_cast<size_t>(received));
  return packet;
}

}  // namespace muster
