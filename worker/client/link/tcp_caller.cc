#include "worker/client/link/tcp_caller.h"

#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame_fields.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"

namespace muster {
namespace {

// Answers in a row before deadlines are looked at.
constexpr int kAnswersInTurn = 16;

}  // namespace

TcpCaller::TcpCaller(PeerName peer, std::unique_ptr<ByteChannel> channel,
                     std::unique_ptr<SocketLoop> loop, BufferPool* pool,
                     const Clock* clock)
    : peer_(std::move(peer)),
      clock_(clock),
      channel_(std::move(channel)),
      loop_(std::move(loop)),
      receiver_(pool,
                [this](const FrameHeader& header) { return PlaceOf(header); }),
      sent_at_(clock->Now()) {}

absl::Status TcpCaller::Named(absl::StatusCode code,
                              absl::string_view words) const {
  return absl::Status(
      code, absl::StrCat(peer_.task, " at ", peer_.address, ": ", words));
}

void TcpCaller::Shutdown() { shutdown(channel_->fd(), SHUT_RDWR); }

// ---- Requests -----------------------------------------------------------

void TcpCaller::Call(Request request, absl::Time deadline, DoneCallback done) {
  if (request.fields.size() > kMaxHeaderBytes ||
      request.data.size() > kMaxPartBytes) {
    return done(Named(absl::StatusCode::kInvalidArgument,
                      absl::StrCat("a request of ", request.fields.size(),
                                   " and ", request.data.size(),
                                   " bytes of tensors; a frame takes at most ",
                                   kMaxHeaderBytes, " and ", kMaxPartBytes)));
  }
  const absl::Duration left = deadline - clock_->Now();
  if (left <= absl::ZeroDuration()) {
    return done(Named(absl::StatusCode::kDeadlineExceeded,
                      "the deadline passed before the request was sent"));
  }
  FrameHeader header;
  header.kind = static_cast<uint32_t>(request.method);
  header.timeout_ms = TimeoutMs(left);
  absl::Status lost;
  {
    absl::MutexLock lock(&mu_);
    lost = lost_;
    if (lost.ok()) {
      header.call = ++last_call_;
      calls_[header.call] = {deadline, std::move(request.place),
                             std::move(done)};
    }
  }
  if (!lost.ok()) return done(lost);
  sender_.Add(header, request.fields, std::move(request.data));
  SendSome();
}

void TcpCaller::SendSome() {
  if (!channel_->is_duplex()) return loop_->Wake(this);
  const absl::StatusOr<FrameSender::Progress> progress =
      sender_.Pump(channel_.get());
  if (!progress.ok()) {
    Shutdown();
  } else if (*progress == FrameSender::Progress::kSocketFull) {
    loop_->Wake(this);
  }
}

// ---- Answers ------------------------------------------------------------

absl::Status TcpCaller::Run(const Retirement& retirement) {
  // The loop is this one's own: it need not hold it.
  loop_->Add(std::shared_ptr<SocketHandler>(std::shared_ptr<void>(), this));
  absl::Time next_expiry = clock_->Now();
  bool is_retiring = false;
  while (end_.ok() && !(is_retiring && IsIdle())) {
    loop_->RunOnce(kTick);
    const absl::Time now = clock_->Now();
    if (now < next_expiry || !end_.ok()) continue;
    if (now >= retirement.at && !std::exchange(is_retiring, true)) {
      retirement.on_retire();
    }
    end_ = Expire(now);
    next_expiry = now + kTick;
  }
  Shutdown();
  return end_;
}

SocketHandler::Interest TcpCaller::Proceed() {
  const absl::StatusOr<Interest> interest = Exchange();
  if (interest.ok()) return *interest;
  end_ = interest.status();
  Interest none;
  none.ended = true;
  return none;
}

absl::StatusOr<SocketHandler::Interest> TcpCaller::Exchange() {
  Interest interest;
  interest.receive = true;
  interest.again = true;
  for (int i = 0; i < kAnswersInTurn && interest.again; ++i) {
    ASSIGN_OR_RETURN(std::optional<ReceivedFrame> frame,
                     receiver_.Next(channel_.get()));
    interest.again = frame.has_value();
    if (frame.has_value()) RETURN_IF_ERROR(OnAnswer(*std::move(frame)));
    ASSIGN_OR_RETURN(const FrameSender::Progress progress,
                     sender_.Pump(channel_.get()));
    interest.send = progress == FrameSender::Progress::kSocketFull;
  }
  interest.send |= channel_->wants_to_send();
  return interest;
}

std::shared_ptr<ValuePlace> TcpCaller::PlaceOf(const FrameHeader& header) {
  if (header.kind != 0) return nullptr;
  absl::MutexLock lock(&mu_);
  const auto call = calls_.find(header.call);
  return call == calls_.end() ? nullptr : call->second.place;
}

absl::Status TcpCaller::OnAnswer(ReceivedFrame frame) {
  const uint64_t number = frame.header.call;
  PendingCall call;
  {
    absl::MutexLock lock(&mu_);
    if (number == 0 || number > last_call_ ||
        frame.header.kind > kLastStatusCode) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an answer to call ", number, " with status ", frame.header.kind,
          " makes no sense: ", last_call_, " calls were made"));
    }
    const auto found = calls_.find(number);
    // Its deadline has passed.
    if (found == calls_.end()) return absl::OkStatus();
    call = std::move(found->second);
    calls_.erase(found);
  }
  call.place = nullptr;
  if (frame.header.kind != 0) {
    call.done(StatusFromBytes(frame.fields));
  } else if (frame.is_wasted) {
    call.done(Named(absl::StatusCode::kCancelled,
                    "the answer was not wanted any more"));
  } else {
    const absl::Cord data = frame.data();
    call.done(Answer{std::move(frame.fields), data, frame.is_placed});
  }
  return absl::OkStatus();
}

absl::Status TcpCaller::Expire(absl::Time now) {
  std::vector<std::pair<uint64_t, DoneCallback>> late;
  {
    absl::MutexLock lock(&mu_);
    for (auto it = calls_.begin(); it != calls_.end();) {
      const auto call = it++;
      if (call->second.deadline > now) continue;
      late.emplace_back(call->first, std::move(call->second.done));
      calls_.erase(call);
    }
  }
  for (const auto& [number, done] : late) {
    receiver_.Abandon(number);
    sender_.Drop(number);
    unsent_.push_back(number);
    done(Named(absl::StatusCode::kDeadlineExceeded,
               "no answer in time over TCP"));
  }
  if (!IsStuck(now)) return absl::OkStatus();
  return absl::UnavailableError("a request could not be sent in time");
}

bool TcpCaller::IsStuck(absl::Time now) {
  if (const uint64_t sent = sender_.sent_bytes(); sent != sent_bytes_) {
    sent_bytes_ = sent;
    sent_at_ = now;
  }
  unsent_.erase(
      std::remove_if(unsent_.begin(), unsent_.end(),
                     [this](uint64_t call) { return !sender_.Holds(call); }),
      unsent_.end());
  return !unsent_.empty() && now - sent_at_ >= kStuck;
}

bool TcpCaller::IsIdle() {
  absl::MutexLock lock(&mu_);
  return calls_.empty() && sender_.empty();
}

void TcpCaller::Fail(const absl::Status& lost) {
  // To who called it is a peer that went away, whatever it did.
  const absl::Status why =
      Named(absl::StatusCode::kUnavailable, lost.message());
  absl::flat_hash_map<uint64_t, PendingCall> calls;
  {
    absl::MutexLock lock(&mu_);
    lost_ = why;
    calls.swap(calls_);
  }
  for (auto& [number, call] : calls) {
    receiver_.Abandon(number);
    call.place = nullptr;
    call.done(why);
  }
}

}  // namespace muster
