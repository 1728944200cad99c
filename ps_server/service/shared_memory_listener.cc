#include "ps_server/service/shared_memory_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/logging.h"
#include "common/base/reporter.h"
#include "common/base/status_macros.h"
#include "common/rpc/call_table.h"
#include "common/rpc/frame/byte_buffer.h"
#include "common/shared_memory/handshake.h"
#include "common/shared_memory/local_socket.h"
#include "ps_server/service/call_service.h"

namespace muster {
namespace {

// A process without descriptors or memory tries again after this.
constexpr int kPauseMs = 100;

// Workers that are told at the same time that there are too many. Each may take
// kHandshakeTimeout to show its token; those beyond are not told.
constexpr int kMostRefusals = 8;

absl::Status TooMany(int max_connections) {
  return absl::ResourceExhaustedError(
      absl::StrCat("this ps serves ", max_connections,
                   " connections through shared memory, and has them"));
}

// For a worker, which asks for another offer.
absl::Status UnknownOffer() {
  return absl::UnavailableError(
      "the ps does not know this offer of its shared memory, or no longer");
}

class SharedMemoryServiceShell : public CallService {
 public:
  SharedMemoryServiceShell(
      std::function<absl::StatusOr<SharedMemoryOffer>(const Caller&)> offer,
      const Clock* clock, const Entrance* entrance)
      : CallService(/*calls=*/nullptr, clock, entrance) {
    AddCall(kOfferCall, [offer = std::move(offer)](
                            const grpc::ByteBuffer& /*request*/,
                            const Caller& caller, absl::Time /*deadline*/,
                            const ReplyCallback<grpc::ByteBuffer>& done) {
      const absl::StatusOr<SharedMemoryOffer> made = offer(caller);
      if (!made.ok()) return done(made.status());
      done(ToByteBuffer(made->SerializeAsString()));
    });
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<SharedMemoryListener>>
SharedMemoryListener::Start(Options options) {
  std::string socket_name = absl::StrCat("muster-", NewSecret());
  ASSIGN_OR_RETURN(FileDescriptor socket, ListenLocal(socket_name));
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shared memory: eventfd: ", std::strerror(errno)));
  }
  return std::unique_ptr<SharedMemoryListener>(
      new SharedMemoryListener(std::move(options), std::move(socket),
                               std::move(stop), std::move(socket_name)));
}

SharedMemoryListener::SharedMemoryListener(Options options,
                                           FileDescriptor socket,
                                           FileDescriptor stop,
                                           std::string socket_name)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      stop_(std::move(stop)),
      socket_name_(std::move(socket_name)),
      lines_(Reporter(&LogLine), options_.clock),
      thread_(options_.clock->StartThread([this] { Listen(); })) {}

SharedMemoryListener::~SharedMemoryListener() {
  std::vector<std::weak_ptr<SharedMemoryConnection>> open;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    open.swap(open_);
  }
  eventfd_write(stop_.get(), 1);
  for (const auto& weak : open) {
    const std::shared_ptr<SharedMemoryConnection> connection = weak.lock();
    if (connection != nullptr) connection->Shutdown();
  }
  thread_.reset();
  servers_.clear();
}

void SharedMemoryListener::Listen() {
  bool may_accept = true;
  while (AwaitWorker(may_accept)) {
    Reap();
    may_accept = AcceptOne();
  }
}

bool SharedMemoryListener::AwaitWorker(bool may_accept) const {
  pollfd polls[2] = {{stop_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
  // An unready socket is not asked: it would be ready all the time.
  poll(polls, may_accept ? 2 : 1, may_accept ? -1 : kPauseMs);
  return polls[0].revents == 0;
}

bool SharedMemoryListener::AcceptOne() {
  FileDescriptor peer(
      accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer.valid()) {
    return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  }
  const absl::Status user = CheckPeerUser(peer);
  if (!user.ok()) {
    SayTurnedAway(user);
    return true;
  }
  if (connections_ < options_.max_connections) {
    StartServing(std::move(peer), &connections_,
                 &SharedMemoryListener::ServeOne);
  } else if (refusals_ < kMostRefusals) {
    StartServing(std::move(peer), &refusals_, &SharedMemoryListener::RefuseOne);
  } else {
    SayTurnedAway(TooMany(options_.max_connections));
  }
  return true;
}

void SharedMemoryListener::StartServing(
    FileDescriptor socket, std::atomic<int>* count,
    void (SharedMemoryListener::*serve)(FileDescriptor)) {
  // A function must be copyable.
  auto peer = std::make_shared<FileDescriptor>(std::move(socket));
  Server server;
  server.ended = std::make_shared<std::atomic<bool>>(false);
  ++*count;
  try {
    server.thread = options_.clock->StartThread(
        [this, peer, count, serve, ended = server.ended] {
          (this->*serve)(std::move(*peer));
          --*count;
          *ended = true;
        });
  } catch (const std::system_error& error) {
    --*count;
    lines_.Say(
        absl::StrCat("shared memory: no thread for a worker: ", error.what()));
    return;
  }
  servers_.push_back(std::move(server));
}

void SharedMemoryListener::SayTurnedAway(const absl::Status& why) {
  lines_.Say(absl::StrCat("shared memory: turned away: ",
                          EscapeForLog(why.message())));
}

void SharedMemoryListener::Refuse(const FileDescriptor& socket,
                                  const absl::Status& why) {
  SayTurnedAway(why);
  // It may be gone by now.
  RefuseClaim(socket, why).IgnoreError();
}

absl::StatusOr<SharedMemoryOffer> SharedMemoryListener::OfferTo(
    const Caller& caller) {
  SharedMemoryOffer offer;
  offer.set_socket_name(socket_name_);
  ASSIGN_OR_RETURN(*offer.mutable_token(),
                   tokens_.Make(caller, options_.clock->Now()));
  return offer;
}

absl::StatusOr<SharedMemoryListener::Claim> SharedMemoryListener::AwaitOne(
    const FileDescriptor& socket) {
  Claim claim;
  absl::StatusOr<SegmentClaim> wanted =
      AwaitClaim(socket, [&](absl::string_view token) {
        const std::optional<Caller> caller =
            tokens_.Show(token, options_.clock->Now());
        if (!caller.has_value()) return false;
        claim.token = std::string(token);
        claim.caller = *caller;
        return true;
      });
  if (wanted.ok()) {
    claim.wanted = *wanted;
    return claim;
  }
  tokens_.Close(claim.token);
  if (absl::IsPermissionDenied(wanted.status())) {
    RefuseClaim(socket, UnknownOffer()).IgnoreError();
  }
  return wanted.status();
}

void SharedMemoryListener::ServeOne(FileDescriptor socket) {
  const absl::StatusOr<Claim> claim = AwaitOne(socket);
  if (!claim.ok()) return SayTurnedAway(claim.status());
  ServeClaim(std::move(socket), *claim);
  tokens_.Close(claim->token);
}

void SharedMemoryListener::ServeClaim(FileDescriptor socket,
                                      const Claim& claim) {
  const auto& parameters_of = claim.wanted.parameters_of;
  if (parameters_of.has_value()) {
    const absl::Status given =
        GiveParameters(socket, *parameters_of, claim.caller);
    return given.ok() ? void() : SayTurnedAway(given);
  }
  absl::StatusOr<MemorySegment> segment = OfferSegment(socket);
  if (!segment.ok()) return Refuse(socket, segment.status());
  Serve(std::move(socket), *std::move(segment), claim.caller);
}

void SharedMemoryListener::RefuseOne(FileDescriptor socket) {
  const absl::StatusOr<Claim> claim = AwaitOne(socket);
  if (!claim.ok()) return SayTurnedAway(claim.status());
  Refuse(socket, TooMany(options_.max_connections));
  tokens_.Close(claim->token);
}

absl::Status SharedMemoryListener::GiveParameters(const FileDescriptor& socket,
                                                  int64_t model_epoch,
                                                  const Caller& caller) {
  const absl::Status may = options_.entrance->Check(kPullCall, caller);
  if (!may.ok()) return RefuseClaim(socket, may);
  const absl::StatusOr<std::shared_ptr<const ParameterMemory>> memory =
      options_.shard->ParametersInPlace(model_epoch);
  const absl::Status why =
      memory.ok() ? (*memory)->segment().status() : memory.status();
  if (!why.ok()) return RefuseClaim(socket, why);
  return OfferParameters(socket, *(*memory)->segment());
}

void SharedMemoryListener::Serve(FileDescriptor socket, MemorySegment segment,
                                 const Caller& caller) {
  const auto connection = std::make_shared<SharedMemoryConnection>(
      SharedMemoryConnection::Parts{options_.shard, options_.clock, caller,
                                    options_.entrance},
      std::move(socket), std::move(segment));
  if (!Register(connection)) return;
  const absl::Status end = connection->Serve();
  if (!end.ok()) {
    connection->Shutdown();
    lines_.Say(absl::StrCat("shared memory: a worker's connection was ended: ",
                            EscapeForLog(end.message())));
  }
}

bool SharedMemoryListener::Register(
    const std::shared_ptr<SharedMemoryConnection>& connection) {
  absl::MutexLock lock(&mu_);
  if (stopping_) return false;
  open_.erase(std::remove_if(open_.begin(), open_.end(),
                             [](const auto& weak) { return weak.expired(); }),
              open_.end());
  open_.push_back(connection);
  return true;
}

void SharedMemoryListener::Reap() {
  servers_.erase(
      std::remove_if(servers_.begin(), servers_.end(),
                     [](const Server& server) { return server.ended->load(); }),
      servers_.end());
}

std::unique_ptr<grpc::Service> MakeSharedMemoryService(
    std::function<absl::StatusOr<SharedMemoryOffer>(const Caller&)> offer,
    const Clock* clock, const Entrance* entrance) {
  return std::make_unique<SharedMemoryServiceShell>(std::move(offer), clock,
                                                    entrance);
}

}  // namespace muster
