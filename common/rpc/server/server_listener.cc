#include "common/rpc/server/server_listener.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/loopback_sockets.h"

namespace muster {
namespace {

// A process without descriptors or memory tries again after this.
constexpr int kPauseMs = 100;

constexpr absl::Duration kBetweenLines = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<ServerListener>> ServerListener::Listen(
    const std::string& address) {
  ASSIGN_OR_RETURN(ListeningSockets sockets, ListenOn(address));
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("listen on ", address, ": eventfd: ", strerror(errno)));
  }
  return std::unique_ptr<ServerListener>(
      new ServerListener(std::move(sockets), std::move(stop)));
}

ServerListener::ServerListener(ListeningSockets sockets, FileDescriptor stop)
    : sockets_(std::move(sockets.sockets)),
      port_(sockets.port),
      stop_(std::move(stop)) {
  polls_.push_back({stop_.get(), POLLIN, 0});
  for (const FileDescriptor& socket : sockets_) {
    polls_.push_back({socket.get(), POLLIN, 0});
  }
}

ServerListener::~ServerListener() {
  eventfd_write(stop_.get(), 1);
  thread_.reset();
}

void ServerListener::AddTo(
    grpc::ServerBuilder* builder,
    std::shared_ptr<grpc::ServerCredentials> credentials) {
  using FromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server_ = builder->experimental().AddExternalConnectionAcceptor(
      FromFd::FROM_FD, std::move(credentials));
}

void ServerListener::Start(const Clock* clock, Reporter reporter) {
  clock_ = clock;
  reporter_ = std::move(reporter);
  thread_ = clock->StartThread([this] { Accept(); });
}

void ServerListener::Accept() {
  bool may_accept = true;
  while (AwaitConnections(may_accept)) may_accept = AcceptReady();
}

bool ServerListener::AwaitConnections(bool may_accept) {
  // An unready socket is not asked: it would be ready all the time.
  poll(polls_.data(), may_accept ? polls_.size() : 1,
       may_accept ? -1 : kPauseMs);
  return polls_[0].revents == 0;
}

bool ServerListener::AcceptReady() {
  bool accepted = true;
  for (size_t i = 1; i < polls_.size(); ++i) {
    accepted = AcceptOne(polls_[i].fd) && accepted;
  }
  return accepted;
}

bool ServerListener::AcceptOne(int socket) {
  const int fd =
      accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return true;
    SayShortage(error);
    return false;
  }
  UnpaceLoopback(fd);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      connection;
  connection.listener_fd = socket;
  connection.fd = fd;
  server_->HandleNewConnection(&connection);
  return true;
}

void ServerListener::SayShortage(int error) {
  if (clock_->Now() - said_ < kBetweenLines) return;
  said_ = clock_->Now();
  reporter_.Warning(
      absl::StrCat("port ", port_,
                   ": no connection can be accepted for now: ", strerror(error),
                   "; those that come wait. `ulimit -Hn` bounds the file "
                   "descriptors"));
}

}  // namespace muster
