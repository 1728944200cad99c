#include "ps_server/service/tcp_listener.h"

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/rpc/call_table.h"
#include "common/rpc/frame/byte_buffer.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/service/call_service.h"
#include "ps_server/service/strand.h"

namespace muster {
namespace {

absl::Status GoingAway() {
  return absl::UnavailableError("the ps is shutting down");
}

int CountLoops(int wanted) {
  if (wanted > 0) return wanted;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores, 1, TcpListener::kMostLoops);
}

std::string DescribeHolder(const Caller& caller) {
  return caller.task.has_value() ? TaskName(*caller.task)
                                 : std::string("nobody of this cluster");
}

class TcpLinkServiceShell : public CallService {
 public:
  TcpLinkServiceShell(
      std::function<absl::StatusOr<TcpOffer>(const Caller&)> offer,
      const Clock* clock, const Entrance* entrance)
      : CallService(/*calls=*/nullptr, clock, entrance) {
    AddCall(kTcpOfferCall, [offer = std::move(offer)](
                               const grpc::ByteBuffer& /*request*/,
                               const Caller& caller, absl::Time /*deadline*/,
                               const ReplyCallback<grpc::ByteBuffer>& done) {
      const absl::StatusOr<TcpOffer> made = offer(caller);
      if (!made.ok()) return done(made.status());
      done(ToByteBuffer(made->SerializeAsString()));
    });
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Start(
    Options options) {
  std::vector<std::shared_ptr<SocketLoop>> loops;
  for (int i = CountLoops(options.loops); i > 0; --i) {
    ASSIGN_OR_RETURN(std::unique_ptr<SocketLoop> loop, SocketLoop::Create());
    loops.push_back(std::move(loop));
  }
  return std::unique_ptr<TcpListener>(
      new TcpListener(std::move(options), std::move(loops)));
}

TcpListener::TcpListener(Options options,
                         std::vector<std::shared_ptr<SocketLoop>> loops)
    : options_(std::move(options)),
      loops_(std::move(loops)),
      pool_(std::make_shared<BufferPool>()),
      lines_(options_.reporter, options_.clock) {
  for (const auto& loop : loops_) {
    threads_.push_back(
        options_.clock->StartThread([this, loop] { Run(loop.get()); }));
  }
}

TcpListener::~TcpListener() {
  Connections all;
  {
    absl::MutexLock lock(&mu_);
    is_closing_ = true;
    all = greeting_;
    all.insert(all.end(), open_.begin(), open_.end());
  }
  for (const auto& connection : all) connection->Close(GoingAway());
  {
    absl::MutexLock lock(&mu_);
    options_.clock->Await(&mu_, absl::Condition(this, &TcpListener::IsEmpty),
                          kFarewell);
  }
  for (const auto& loop : loops_) loop->Stop();
  threads_.clear();
}

void TcpListener::Run(SocketLoop* loop) {
  // Between two requests that this thread carries out, which may be others'.
  const std::function<void()> hook = [loop] {
    loop->RunOnce(absl::ZeroDuration());
  };
  const Strand::YieldHook yield_hook = options_.shard->YieldTo(&hook);
  loop->Run();
}

std::shared_ptr<SocketLoop> TcpListener::LeastLoaded() const {
  return *std::min_element(loops_.begin(), loops_.end(),
                           [](const auto& one, const auto& other) {
                             return one->size() < other->size();
                           });
}

TcpConnection::Parts TcpListener::PartsOn(std::shared_ptr<SocketLoop> loop) {
  TcpConnection::Parts parts;
  parts.shard = options_.shard;
  parts.clock = options_.clock;
  parts.entrance = options_.entrance;
  parts.pool = pool_;
  parts.loop = std::move(loop);
  parts.open = options_.open;
  parts.admit = [this](TcpConnection* connection, absl::string_view token,
                       absl::string_view certificate) {
    return Admit(connection, token, certificate);
  };
  parts.on_end = [this](TcpConnection* connection, const absl::Status& why) {
    OnEnd(connection, why);
  };
  return parts;
}

void TcpListener::Accept(FileDescriptor socket) {
  SetUpTensorSocket(socket.get());
  const std::shared_ptr<SocketLoop> loop = LeastLoaded();
  const auto connection =
      std::make_shared<TcpConnection>(PartsOn(loop), std::move(socket));
  std::shared_ptr<TcpConnection> oldest;
  {
    absl::MutexLock lock(&mu_);
    if (is_closing_) return;
    greeting_.push_back(connection);
    if (greeting_.size() > kMostGreeting) {
      oldest = std::move(greeting_.front());
      greeting_.pop_front();
    }
    // Under the lock: a loop that has stopped would keep it.
    loop->Add(connection);
  }
  if (oldest == nullptr) return;
  oldest->Close(absl::ResourceExhaustedError(
      absl::StrCat("the oldest of more than ", kMostGreeting,
                   " connections that have shown no token")));
}

absl::StatusOr<TcpOffer> TcpListener::OfferTo(const Caller& caller) {
  TcpOffer offer;
  ASSIGN_OR_RETURN(*offer.mutable_token(),
                   tokens_.Make(caller, options_.clock->Now()));
  return offer;
}

absl::StatusOr<Caller> TcpListener::Admit(TcpConnection* connection,
                                          absl::string_view token,
                                          absl::string_view certificate) {
  absl::StatusOr<Caller> caller = Identify(token, certificate);
  if (caller.ok()) {
    const absl::Status opened = Open(connection);
    if (!opened.ok()) caller = opened;
  }
  if (!caller.ok()) Report("turned away", caller.status());
  return caller;
}

absl::StatusOr<Caller> TcpListener::Identify(absl::string_view token,
                                             absl::string_view certificate) {
  std::optional<Caller> caller = tokens_.Redeem(token, options_.clock->Now());
  if (!caller.has_value()) {
    return absl::UnavailableError(
        "the ps does not know this offer of a TCP connection, or no longer");
  }
  const Caller holder = options_.entrance->IdentifyHolder(certificate);
  if (holder.role != caller->role || holder.task != caller->task) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the certificate of this TCP connection is of ", DescribeHolder(holder),
        ", its offer was made to ", DescribeHolder(*caller)));
  }
  caller->valid_until = holder.valid_until;
  return *caller;
}

absl::Status TcpListener::Open(TcpConnection* connection) {
  absl::MutexLock lock(&mu_);
  if (is_closing_) return GoingAway();
  if (open_.size() >= options_.max_connections) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this ps serves ", options_.max_connections,
                     " TCP connections, and has them"));
  }
  const auto found = std::find_if(
      greeting_.begin(), greeting_.end(),
      [connection](const auto& one) { return one.get() == connection; });
  // Its place may have been given to a younger one.
  if (found == greeting_.end()) return GoingAway();
  open_.splice(open_.end(), greeting_, found);
  return absl::OkStatus();
}

void TcpListener::OnEnd(TcpConnection* connection, const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    const auto is_it = [connection](const auto& one) {
      return one.get() == connection;
    };
    greeting_.remove_if(is_it);
    open_.remove_if(is_it);
  }
  // Who has gone, and a certificate's end, are no news.
  if (!why.ok() && !absl::IsUnavailable(why)) Report("ended", why);
}

void TcpListener::Report(absl::string_view what, const absl::Status& why) {
  lines_.Say(absl::StrCat("tcp: a connection was ", what, ": ",
                          EscapeForLog(why.message())));
}

size_t TcpListener::connections() const {
  absl::MutexLock lock(&mu_);
  return open_.size();
}

std::unique_ptr<grpc::Service> MakeTcpLinkService(
    std::function<absl::StatusOr<TcpOffer>(const Caller&)> offer,
    const Clock* clock, const Entrance* entrance) {
  return std::make_unique<TcpLinkServiceShell>(std::move(offer), clock,
                                               entrance);
}

}  // namespace muster
