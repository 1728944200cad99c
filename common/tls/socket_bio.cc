#include "common/tls/socket_bio.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

SocketBio* Of(BIO* bio) { return static_cast<SocketBio*>(BIO_get_data(bio)); }

}  // namespace

SocketBio::SocketBio(FileDescriptor socket) : socket_(std::move(socket)) {
  fcntl(fd(), F_SETFL, fcntl(fd(), F_GETFL) | O_NONBLOCK);
}

BIO* SocketBio::NewBio() {
  BIO* const bio = BIO_new(Method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

const BIO_METHOD* SocketBio::Method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_read(made, &SocketBio::Read);
    BIO_meth_set_write(made, &SocketBio::Write);
    BIO_meth_set_ctrl(made, &SocketBio::Control);
    return made;
  }();
  return kMethod;
}

bool SocketBio::Drain() {
  while (begin_ < end_) {
    const ssize_t sent =
        send(fd(), out_.data() + begin_, end_ - begin_, MSG_NOSIGNAL);
    if (sent < 0) {
      MayRepeat();
      return false;
    }
    begin_ += static_cast<size_t>(sent);
  }
  begin_ = end_ = 0;
  return true;
}

int SocketBio::Read(BIO* bio, char* into, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t received =
      recv(Of(bio)->fd(), into, static_cast<size_t>(size), 0);
  if (received < 0 && Of(bio)->MayRepeat()) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

int SocketBio::Write(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  SocketBio& socket = *Of(bio);
  if (socket.out_.size() - socket.end_ < static_cast<size_t>(size)) {
    socket.Drain();
  }
  const size_t taken =
      std::min(socket.out_.size() - socket.end_, static_cast<size_t>(size));
  if (taken == 0) {
    if (socket.status_.ok()) BIO_set_retry_write(bio);
    return -1;
  }
  std::memcpy(socket.out_.data() + socket.end_, from, taken);
  socket.end_ += taken;
  return static_cast<int>(taken);
}

long SocketBio::Control(BIO* bio, int command, long, void*) {
  if (command != BIO_CTRL_FLUSH) return 0;
  Of(bio)->Drain();
  return 1;
}

bool SocketBio::MayRepeat() {
  if (errno == EAGAIN || errno == EINTR) return true;
  status_ = absl::UnavailableError(
      absl::StrCat("the connection is broken: ", strerror(errno)));
  return false;
}

}  // namespace muster
