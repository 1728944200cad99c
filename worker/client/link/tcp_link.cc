#include "worker/client/link/tcp_link.h"

#include <sys/eventfd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/rpc/call_table.h"
#include "common/rpc/deadline.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/frame_fields.h"
#include "common/rpc/protocol.h"
#include "common/rpc/tcp/greeting.h"
#include "common/rpc/tcp/socket_loop.h"

namespace muster {
namespace {

// While one part is received another is sent and a third applied: smaller ones
// overlap better, as through shared memory.
constexpr int64_t kTcpPartBytes = kMaxPartBytes / 2;

void MarkPlaced(bool /*is_placed*/, LoadReply* /*reply*/) {}
template <typename Header>
void MarkPlaced(bool is_placed, Frame<Header>* frame) {
  frame->is_placed = is_placed;
}

template <typename Reply>
TcpCaller::DoneCallback Parsing(ReplyCallback<Reply> done) {
  return [done = std::move(done)](absl::StatusOr<TcpCaller::Answer> answer) {
    if (!answer.ok()) return done(answer.status());
    Reply reply;
    const absl::Status status =
        ParseFields("TCP", answer->fields, std::move(answer->data), &reply);
    if (!status.ok()) return done(status);
    MarkPlaced(answer->is_placed, &reply);
    done(std::move(reply));
  };
}

absl::Status Closing() {
  return absl::CancelledError("the link to the ps is closing");
}

// The ps answers nothing, over whatever link.
bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// What no further attempt mends.
bool IsLasting(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

// What a Hello says where TCP is required and there is none.
absl::Status Unobtainable(const absl::Status& why, absl::string_view text) {
  if (!IsLasting(why)) return absl::UnavailableError(text);
  return absl::Status(
      absl::IsPermissionDenied(why) ? absl::StatusCode::kPermissionDenied
                                    : absl::StatusCode::kFailedPrecondition,
      absl::StrCat(
          text, "; start the worker with --link=auto or grpc",
          absl::IsUnimplemented(why) ? ", or see the ps's --link" : ""));
}

// The error of a message with tensors for want of a connection: it may be sent
// again, whatever a Hello says then, unless the ps refuses whoever sends it. It
// is no fence.
absl::Status Missing(const absl::Status& why) {
  if (absl::IsCancelled(why) || absl::IsPermissionDenied(why)) return why;
  return absl::UnavailableError(why.message());
}

// "/job:ps/task:0 at localhost:2222: "
std::string Prefix(const PeerName& peer) {
  return absl::StrCat(peer.task, " at ", peer.address, ": ");
}

}  // namespace

TcpLink::TcpLink(Options options, std::unique_ptr<ParameterLink> other)
    : options_(std::move(options)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pauses_(options_.pauses, absl::ToUnixNanos(options_.clock->Now())),
      other_(std::move(other)),
      thread_(options_.clock->StartThread([this] { Run(); })) {}

TcpLink::~TcpLink() {
  std::shared_ptr<TcpCaller> open;
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
    open = tcp_;
  }
  eventfd_write(stop_.get(), 1);
  if (open != nullptr) open->Shutdown();
  thread_.reset();
}

bool TcpLink::is_closing() const {
  absl::MutexLock lock(&mu_);
  return closing_;
}

int64_t TcpLink::best_part_bytes() const {
  {
    absl::MutexLock lock(&mu_);
    if (retry_at_ == absl::InfiniteFuture()) return kTcpPartBytes;
  }
  return other_->best_part_bytes();
}

void TcpLink::Report(const std::string& line) {
  if (line.empty() || reported_ == line) return;
  reported_ = line;
  options_.reporter.Info(
      absl::StrCat("link to ", options_.peer.task, ": ", line));
}

// ---- Calls --------------------------------------------------------------

void TcpLink::Begin(Start start) {
  Way way;
  {
    absl::MutexLock lock(&mu_);
    if (closing_) {
      way.missing = Closing();
    } else if (tcp_ != nullptr) {
      way.tcp = tcp_;
    } else if (retry_at_ == absl::InfiniteFuture()) {
      waiting_.push_back(std::move(start));
      return;
    }
  }
  start(way);
}

void TcpLink::CallBytes(const AnyMethod& method, std::string request,
                        absl::Time deadline, ReplyCallback<std::string> done) {
  if (options_.required && method == kHelloCall) {
    return Greet(std::move(request), deadline,
                 SerializeReply<HelloReply>(std::move(done)));
  }
  other_->CallBytes(method, std::move(request), deadline, std::move(done));
}

void TcpLink::Greet(std::string request, absl::Time deadline,
                    const ReplyCallback<HelloReply>& done) {
  const auto on_reply = [this, done](const absl::StatusOr<HelloReply>& reply) {
    // Not greeted yet, if it is to be confirmed.
    if (!reply.ok() || reply->takeover() != 0) return done(reply);
    Begin([done, reply = *reply](const Way& way) {
      if (!way.missing.ok()) return done(way.missing);
      done(reply);
    });
  };
  other_->CallBytes(kHelloCall, std::move(request), deadline,
                    ParseReply(kHelloCall, on_reply));
}

void TcpLink::Load(Frame<LoadPart> request, absl::Time deadline,
                   ReplyCallback<LoadReply> done) {
  Begin([this, request = std::move(request), deadline,
         done = std::move(done)](const Way& way) mutable {
    if (!way.missing.ok()) return done(Missing(way.missing));
    if (way.tcp == nullptr) {
      return other_->Load(std::move(request), deadline, std::move(done));
    }
    way.tcp->Call({DataMethod::kLoad, request.header.SerializeAsString(),
                   std::move(request.data), nullptr},
                  deadline, Parsing<LoadReply>(std::move(done)));
  });
}

void TcpLink::Pull(const PullRequest& request, absl::Time deadline,
                   ReplyCallback<Frame<PullReply>> done) {
  PullTo(nullptr, request, deadline, std::move(done));
}

void TcpLink::PullTo(std::shared_ptr<ValuePlace> place,
                     const PullRequest& request, absl::Time deadline,
                     ReplyCallback<Frame<PullReply>> done) {
  Begin([this, place = std::move(place), request, deadline,
         done = std::move(done)](const Way& way) mutable {
    if (!way.missing.ok()) return done(Missing(way.missing));
    if (way.tcp == nullptr) {
      return other_->PullTo(std::move(place), request, deadline,
                            std::move(done));
    }
    way.tcp->Call({DataMethod::kPull, request.SerializeAsString(), absl::Cord(),
                   std::move(place)},
                  deadline, Parsing<Frame<PullReply>>(std::move(done)));
  });
}

void TcpLink::Push(Frame<PushPart> request, absl::Time deadline,
                   ReplyCallback<Frame<PushReply>> done) {
  PushTo(nullptr, std::move(request), deadline, std::move(done));
}

void TcpLink::PushTo(std::shared_ptr<ValuePlace> place, Frame<PushPart> request,
                     absl::Time deadline,
                     ReplyCallback<Frame<PushReply>> done) {
  Begin([this, place = std::move(place), request = std::move(request), deadline,
         done = std::move(done)](const Way& way) mutable {
    if (!way.missing.ok()) return done(Missing(way.missing));
    if (way.tcp == nullptr) {
      return other_->PushTo(std::move(place), std::move(request), deadline,
                            std::move(done));
    }
    way.tcp->Call({DataMethod::kPush, request.header.SerializeAsString(),
                   std::move(request.data), std::move(place)},
                  deadline, Parsing<Frame<PushReply>>(std::move(done)));
  });
}

void TcpLink::PullRows(Frame<PullRowsRequest> request, absl::Time deadline,
                       ReplyCallback<Frame<PullRowsReply>> done) {
  Begin([this, request = std::move(request), deadline,
         done = std::move(done)](const Way& way) mutable {
    if (!way.missing.ok()) return done(Missing(way.missing));
    if (way.tcp == nullptr) {
      return other_->PullRows(std::move(request), deadline, std::move(done));
    }
    way.tcp->Call({DataMethod::kPullRows, request.header.SerializeAsString(),
                   std::move(request.data), nullptr},
                  deadline, Parsing<Frame<PullRowsReply>>(std::move(done)));
  });
}

void TcpLink::ReadSnapshot(const ReadSnapshotRequest& request,
                           absl::Time deadline,
                           ReplyCallback<Frame<SnapshotPart>> done) {
  Begin([this, request, deadline,
         done = std::move(done)](const Way& way) mutable {
    if (!way.missing.ok()) return done(Missing(way.missing));
    if (way.tcp == nullptr) {
      return other_->ReadSnapshot(request, deadline, std::move(done));
    }
    way.tcp->Call({DataMethod::kReadSnapshot, request.SerializeAsString(),
                   absl::Cord(), nullptr},
                  deadline, Parsing<Frame<SnapshotPart>>(std::move(done)));
  });
}

// ---- The thread ---------------------------------------------------------

void TcpLink::Run() {
  while (AwaitTurn()) Attempt();
  Way way;
  way.missing = Closing();
  Settle(way, absl::InfiniteFuture(), "");
}

bool TcpLink::AwaitTurn() {
  const auto has_turn = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closing_ || !waiting_.empty();
  };
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_, absl::Condition(&has_turn),
                        retry_at_ - options_.clock->Now());
  return !closing_;
}

void TcpLink::Attempt() {
  const absl::StatusOr<TcpOffer> offer = AskForOffer();
  if (is_closing()) return;
  if (IsAway(offer.status())) {
    Way way;
    if (options_.required) way.missing = offer.status();
    return Settle(way, absl::InfiniteFuture(), "");
  }
  if (absl::IsUnimplemented(offer.status())) {
    return GoWithout(absl::UnimplementedError("the ps offers none"));
  }
  if (!offer.ok()) return GoWithout(offer.status());
  absl::StatusOr<std::unique_ptr<ByteChannel>> channel = Connect(*offer);
  if (is_closing()) return;
  if (!channel.ok()) return GoWithout(channel.status());
  Serve(*std::move(channel));
}

absl::StatusOr<TcpOffer> TcpLink::AskForOffer() {
  {
    absl::MutexLock lock(&mu_);
    offer_.reset();
  }
  other_->Call(kTcpOfferCall, {}, options_.clock->Now() + kControlTimeout,
               [this](absl::StatusOr<TcpOffer> offer) {
                 absl::MutexLock lock(&mu_);
                 offer_ = std::move(offer);
               });
  const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closing_ || offer_.has_value();
  };
  absl::MutexLock lock(&mu_);
  options_.clock->Await(&mu_, absl::Condition(&is_there),
                        absl::InfiniteDuration());
  if (!offer_.has_value()) return Closing();
  return *std::move(offer_);
}

absl::StatusOr<std::unique_ptr<ByteChannel>> TcpLink::Connect(
    const TcpOffer& offer) {
  if (offer.token().size() != kTensorTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the offer's token has ", offer.token().size(),
                     " bytes; wanted ", kTensorTokenBytes));
  }
  TensorDial dial;
  dial.address = options_.peer.address;
  dial.task = options_.peer.task;
  dial.token = offer.token();
  dial.open = options_.open;
  dial.patience = options_.patience;
  dial.stop_fd = stop_.get();
  return DialForTensors(dial);
}

void TcpLink::GoWithout(const absl::Status& why) {
  const std::string prefix = Prefix(options_.peer);
  const absl::string_view words = absl::StripPrefix(why.message(), prefix);
  Way way;
  if (options_.required) {
    way.missing = Unobtainable(why, absl::StrCat(prefix, "no TCP: ", words));
    return Settle(way, absl::InfiniteFuture(), "");
  }
  Settle(way, options_.clock->Now() + pauses_.Next(),
         absl::StrCat("gRPC; no TCP: ", words));
}

void TcpLink::Settle(const Way& way, absl::Time retry_at,
                     const std::string& line) {
  std::vector<Start> waiting;
  {
    absl::MutexLock lock(&mu_);
    tcp_ = way.tcp;
    retry_at_ = retry_at;
    waiting.swap(waiting_);
  }
  Report(line);
  for (const Start& start : waiting) start(way);
}

void TcpLink::ForgetConnection() {
  absl::MutexLock lock(&mu_);
  tcp_ = nullptr;
}

void TcpLink::Serve(std::unique_ptr<ByteChannel> channel) {
  absl::StatusOr<std::unique_ptr<SocketLoop>> loop = SocketLoop::Create();
  if (!loop.ok()) return GoWithout(loop.status());
  const bool has_keys = !channel->PeerCertificate().empty();
  pauses_.Reset();
  Way way;
  way.tcp =
      std::make_shared<TcpCaller>(options_.peer, std::move(channel),
                                  *std::move(loop), &pool_, options_.clock);
  Settle(way, absl::InfiniteFuture(), has_keys ? "TCP with TLS 1.3" : "TCP");
  // Its destructor may have looked before.
  if (is_closing()) way.tcp->Shutdown();
  TcpCaller::Retirement retirement;
  if (has_keys) retirement.at = options_.clock->Now() + options_.keyed_age;
  retirement.on_retire = [this] { ForgetConnection(); };
  absl::Status lost = way.tcp->Run(retirement);
  ForgetConnection();
  if (lost.ok()) {
    lost = absl::UnavailableError("the connection is replaced by a new one");
  } else if (!is_closing()) {
    Report(absl::StrCat("connection lost; ", lost.message()));
  }
  way.tcp->Fail(lost);
}

}  // namespace muster
