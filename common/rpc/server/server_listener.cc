#include "common/rpc/server/server_listener.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/rpc/loopback_sockets.h"

namespace muster {
namespace {

// A process without descriptors or memory tries again after this.
constexpr int kPauseMs = 100;

// Between two looks whether one that says nothing has had its time.
constexpr int kFreshMs = 1000;

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
      stop_(std::move(stop)) {}

ServerListener::~ServerListener() {
  eventfd_write(stop_.get(), 1);
  thread_.reset();
}

void ServerListener::AddTo(grpc::ServerBuilder* builder,
                           std::shared_ptr<grpc::ServerCredentials> credentials,
                           Protocol protocol) {
  protocol_ = protocol;
  using FromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  server_ = builder->experimental().AddExternalConnectionAcceptor(
      FromFd::FROM_FD, std::move(credentials));
}

void ServerListener::Start(const Clock* clock, Reporter reporter) {
  clock_ = clock;
  reporter_ = std::move(reporter);
  fresh_ = std::make_unique<FreshConnections>(
      protocol_, reporter_, clock,
      [this](FileDescriptor connection) { HandOver(std::move(connection)); },
      take_tensors_);
  thread_ = clock->StartThread([this] { Accept(); });
}

void ServerListener::Accept() {
  bool may_accept = true;
  while (AwaitConnections(may_accept)) may_accept = AcceptReady();
}

bool ServerListener::AwaitConnections(bool may_accept) {
  polls_ = {{stop_.get(), POLLIN, 0}};
  for (const FileDescriptor& socket : sockets_) {
    // An unready socket is not asked: it would be ready all the time.
    polls_.push_back({may_accept ? socket.get() : -1, POLLIN, 0});
  }
  fresh_->AppendTo(&polls_);
  const int pause_ms = fresh_->empty() ? -1 : kFreshMs;
  poll(polls_.data(), polls_.size(), may_accept ? pause_ms : kPauseMs);
  return polls_[0].revents == 0;
}

bool ServerListener::AcceptReady() {
  const size_t first_fresh = 1 + sockets_.size();
  fresh_->Look(absl::MakeConstSpan(polls_).subspan(first_fresh));
  bool accepted = true;
  for (size_t i = 1; i < first_fresh; ++i) {
    accepted = AcceptOne(sockets_[i - 1].get()) && accepted;
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
  fresh_->Add(FileDescriptor(fd));
  return true;
}

void ServerListener::HandOver(FileDescriptor connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      parameters;
  parameters.listener_fd = sockets_.front().get();
  parameters.fd = connection.Release();
  server_->HandleNewConnection(&parameters);
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
