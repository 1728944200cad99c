#include "worker/client/link/stream_caller.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

// The frame around a request: its number, time and size.
constexpr size_t kMaxEnvelopeBytes = 32;
constexpr size_t kMaxRequestBytes =
    kMaxPartBytes + kMaxHeaderBytes - kMaxEnvelopeBytes;

}  // namespace

StreamCaller::StreamCaller(PeerName peer, PeerChannel::OpenFunction open)
    : StreamCaller(std::move(peer), std::move(open), SystemClock(),
                   std::make_unique<TimerQueue>()) {}

StreamCaller::StreamCaller(PeerName peer, PeerChannel::OpenFunction open,
                           const Clock* clock, std::unique_ptr<Timers> timers)
    : peer_(std::move(peer)),
      clock_(clock),
      channel_(std::move(open)),
      timers_(std::move(timers)) {}

StreamCaller::~StreamCaller() {
  std::shared_ptr<ExchangeStream> stream;
  {
    absl::MutexLock lock(&mu_);
    stream.swap(stream_);
  }
  if (stream != nullptr) stream->Cancel();
  stream.reset();
  alive_.AwaitNone();
}

void StreamCaller::Call(const ExchangeBody& request, absl::Time deadline,
                        const BytesCallback& done) {
  const size_t bytes = request.message.Length();
  if (bytes > kMaxRequestBytes) {
    // gRPC would refuse it and end the stream.
    return done(absl::ResourceExhaustedError(
        absl::StrCat(peer_.task, " at ", peer_.address, ": a request of ",
                     bytes, " bytes; at most ", kMaxRequestBytes, " fit")));
  }
  for (bool sent = false; !sent;) {
    std::shared_ptr<ExchangeStream> stream;
    bool is_new = false;
    {
      absl::MutexLock lock(&mu_);
      is_new = stream_ == nullptr;
      if (is_new) {
        stream_ = MakeStream();
      }
      stream = stream_;
    }
    sent = stream->Send(request, deadline, done);
    if (is_new) stream->Open();
    if (!sent) Forget(stream.get());
  }
  Arm(deadline);
}

std::shared_ptr<ExchangeStream> StreamCaller::MakeStream() {
  return std::make_shared<ExchangeStream>(
      ExchangeStream::Parts{&peer_, clock_, &channel_, &alive_,
                            [this](ExchangeStream* ended) { Forget(ended); }});
}

void StreamCaller::Forget(ExchangeStream* stream) {
  std::shared_ptr<ExchangeStream> forgotten;  // goes without the lock
  absl::MutexLock lock(&mu_);
  if (stream_.get() == stream) forgotten.swap(stream_);
}

void StreamCaller::Arm(absl::Time deadline) {
  {
    absl::MutexLock lock(&mu_);
    if (deadline >= armed_) return;
    armed_ = deadline;
  }
  timers_->RunAt(deadline, [this, deadline] { OnTimer(deadline); });
}

void StreamCaller::OnTimer(absl::Time armed) {
  std::shared_ptr<ExchangeStream> stream;
  {
    absl::MutexLock lock(&mu_);
    if (armed != armed_) return;
    armed_ = absl::InfiniteFuture();
    stream = stream_;
  }
  if (stream != nullptr) Arm(stream->Expire());
}

}  // namespace muster
