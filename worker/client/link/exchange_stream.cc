#include "worker/client/link/exchange_stream.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/stub_options.h"
#include "proto/parameter_service.pb.h"

namespace muster {
namespace {

absl::Status Named(const PeerName& peer, absl::StatusCode code,
                   absl::string_view words) {
  return absl::Status(
      code, absl::StrCat(peer.task, " at ", peer.address, ": ", words));
}

}  // namespace

ExchangeStream::ExchangeStream(Parts parts)
    : alive_(parts.alive),
      parts_(std::move(parts)),
      channel_(parts_.channel->Get()) {}

void ExchangeStream::Open() {
  {
    absl::MutexLock lock(&mu_);
    self_ = shared_from_this();
  }
  grpc::GenericStub(channel_).PrepareBidiStreamingCall(
      &context_, kExchangeMethod, grpc::StubOptions(), this);
  // For the writes, which begin outside gRPC's callbacks.
  AddHold();
  StartRead(&incoming_);
  StartCall();
  WriteNext();
}

void ExchangeStream::Cancel() {
  {
    absl::MutexLock lock(&mu_);
    cancelled_ = true;
  }
  context_.TryCancel();
}

// ---- Requests -----------------------------------------------------------

bool ExchangeStream::Send(const ExchangeBody& request, absl::Time deadline,
                          const BytesCallback& done) {
  {
    absl::MutexLock lock(&mu_);
    if (ended_ || !given_up_.ok()) return false;
    const uint64_t call = ++last_call_;
    calls_.try_emplace(call, Call{deadline, done});
    queue_.push_back({call, request});
    if (std::exchange(writing_, true)) return true;
  }
  WriteNext();
  return true;
}

void ExchangeStream::WriteNext() {
  for (;;) {
    Request request;
    bool ended = false;
    {
      absl::MutexLock lock(&mu_);
      // Then writing_ stays true: the hold is removed once.
      ended = ended_;
      if (!ended && queue_.empty()) {
        writing_ = false;
        written_call_ = 0;
      } else if (!ended) {
        request = std::move(queue_.front());
        queue_.pop_front();
        written_call_ = request.call;
      }
    }
    if (ended) return RemoveHold();
    if (request.call == 0) return;
    outgoing_ = Encode(request);
    if (!outgoing_.Valid()) continue;
    request.body.message.Clear();
    return StartWrite(&outgoing_);
  }
}

grpc::ByteBuffer ExchangeStream::Encode(const Request& request) {
  ExchangeRequest header;
  header.set_call(request.call);
  {
    absl::MutexLock lock(&mu_);
    const auto call = calls_.find(request.call);
    if (call == calls_.end()) return grpc::ByteBuffer();
    const int64_t left_ms = absl::ToInt64Milliseconds(absl::Ceil(
        call->second.deadline - parts_.clock->Now(), absl::Milliseconds(1)));
    // Its timer is about to fire.
    if (left_ms <= 0) return grpc::ByteBuffer();
    header.set_timeout_ms(
        static_cast<uint32_t>(std::min<int64_t>(left_ms, UINT32_MAX)));
  }
  return EncodeExchange(header, request.body);
}

void ExchangeStream::OnWriteDone(bool ok) {
  // The sent bytes need not wait for the next ones.
  outgoing_.Clear();
  if (!ok) {
    absl::MutexLock lock(&mu_);
    ended_ = true;
  }
  WriteNext();
}

// ---- Answers ------------------------------------------------------------

void ExchangeStream::OnReadDone(bool ok) {
  if (ok) {
    grpc::ByteBuffer bytes;
    bytes.Swap(&incoming_);
    // The next answer may be read meanwhile.
    StartRead(&incoming_);
    return Deliver(bytes);
  }
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    if (std::exchange(writing_, true)) return;  // who writes ends it
  }
  WriteNext();
}

void ExchangeStream::Deliver(const grpc::ByteBuffer& bytes) {
  ExchangeReply header;
  ExchangeBody body;
  absl::Status status = DecodeExchange(bytes, &header, &body);
  if (!status.ok()) {
    {
      absl::MutexLock lock(&mu_);
      given_up_ = status;
    }
    return context_.TryCancel();
  }
  BytesCallback done;
  {
    absl::MutexLock lock(&mu_);
    const auto call = calls_.find(header.call());
    if (call == calls_.end()) return;  // it came too late
    done = std::move(call->second.done);
    calls_.erase(call);
  }
  if (header.has_error()) return done(StatusFromDetails(header.error()));
  done(std::move(body.message));
}

absl::Time ExchangeStream::Expire() {
  const absl::Time now = parts_.clock->Now();
  absl::Time next = absl::InfiniteFuture();
  std::vector<BytesCallback> late;
  bool stuck = false;
  {
    absl::MutexLock lock(&mu_);
    for (auto it = calls_.begin(); it != calls_.end();) {
      const auto call = it++;
      if (call->second.deadline > now) {
        next = std::min(next, call->second.deadline);
        continue;
      }
      stuck = stuck || call->first == written_call_;
      late.push_back(std::move(call->second.done));
      calls_.erase(call);
    }
    const auto is_late = [this](const Request& request)
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
                               return !calls_.contains(request.call);
                             };
    queue_.erase(std::remove_if(queue_.begin(), queue_.end(), is_late),
                 queue_.end());
    if (stuck) given_up_ = absl::UnavailableError("it reads nothing any more");
  }
  if (stuck) context_.TryCancel();
  for (const BytesCallback& done : late) {
    done(Named(*parts_.peer, absl::StatusCode::kDeadlineExceeded,
               "no answer in time"));
  }
  return next;
}

// ---- The end ------------------------------------------------------------

void ExchangeStream::OnDone(const grpc::Status& status) {
  // Before those who called come again.
  parts_.channel->OnFailure(channel_, ToAbslStatus(status));
  const absl::Status why = WhyEnded(status);
  // With the last one of these the stream goes, after this.
  std::shared_ptr<ExchangeStream> self;
  absl::flat_hash_map<uint64_t, Call> calls;
  {
    absl::MutexLock lock(&mu_);
    calls.swap(calls_);
    queue_.clear();
    self.swap(self_);
  }
  for (const auto& [number, call] : calls) call.done(why);
  parts_.done(this);
}

absl::Status ExchangeStream::WhyEnded(const grpc::Status& status) {
  const absl::Status end = ToAbslStatus(status);
  absl::MutexLock lock(&mu_);
  if (cancelled_) return absl::CancelledError("the link was closed");
  if (!given_up_.ok()) {
    return Named(*parts_.peer, absl::StatusCode::kUnavailable,
                 given_up_.message());
  }
  switch (end.code()) {
    case absl::StatusCode::kOk:
      return Named(*parts_.peer, absl::StatusCode::kUnavailable,
                   "the peer is going away");
    case absl::StatusCode::kUnavailable:
      return ExplainPeerFailure(*parts_.peer, end);
    // Said about the stream, before anything was carried out.
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return end;
    default:
      return Named(
          *parts_.peer, absl::StatusCode::kUnavailable,
          absl::StrCat("the stream of tensors broke: ", end.ToString()));
  }
}

}  // namespace muster
