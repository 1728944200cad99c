#include "ps_server/service/tcp_connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/frame_fields.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"

namespace muster {
namespace {

// Bytes of requests that are not read any more go through so much memory.
constexpr size_t kWasteBytes = size_t{64} * 1024;

template <typename Header>
std::string FieldsOf(const Frame<Header>& frame) {
  return frame.header.SerializeAsString();
}
template <typename Message>
std::string FieldsOf(const Message& message) {
  return message.SerializeAsString();
}
template <typename Header>
absl::Cord DataOf(const Frame<Header>& frame) {
  return frame.data;
}
template <typename Message>
absl::Cord DataOf(const Message& /*message*/) {
  return absl::Cord();
}

}  // namespace

// The CallAdapter of one request.
class TcpConnection::Call {
 public:
  Call(std::shared_ptr<TcpConnection> connection, ReceivedFrame request)
      : connection_(std::move(connection)), request_(std::move(request)) {}

  DataLink& shard() { return *connection_->parts_.shard; }
  CallCheck check() const {
    return {connection_->parts_.entrance,
            RowOf(static_cast<DataMethod>(request_.header.kind)),
            &connection_->caller_};
  }
  ValueMemory Memory() {
    return [pool = connection_->parts_.pool](
               size_t size_bytes, absl::FunctionRef<void(char*)> fill) {
      return pool->Make(size_bytes, fill);
    };
  }
  PushContext ContextOf(const PushPart& push) {
    PushContext context;
    context.has_own_memory = true;
    // Values of another size would overtake the gradient that lies there.
    context.memory =
        push.codec() == push.values_codec() ? RequestMemory() : Memory();
    return context;
  }

  template <typename Request>
  absl::StatusOr<Request> Read() {
    Request request;
    RETURN_IF_ERROR(
        ParseFields("TCP", request_.fields, request_.data(), &request));
    return request;
  }
  template <typename Reply>
  ReplyCallback<Reply> Answer() {
    return [connection = connection_,
            call = request_.header.call](const absl::StatusOr<Reply>& reply) {
      if (!reply.ok()) return connection->AnswerError(call, reply.status());
      connection->Answer(call, FieldsOf(*reply), DataOf(*reply));
    };
  }
  void Fail(const absl::Status& status) {
    connection_->AnswerError(request_.header.call, status);
  }

 private:
  // The request's data, if the values fill them.
  ValueMemory RequestMemory() {
    return [buffer = request_.buffer, capacity = request_.header.data_bytes,
            pool = connection_->parts_.pool](
               size_t size_bytes, absl::FunctionRef<void(char*)> fill) {
      if (size_bytes != capacity) return pool->Make(size_bytes, fill);
      fill(buffer.get());
      return absl::MakeCordFromExternal({buffer.get(), size_bytes},
                                        [held = buffer] {});
    };
  }

  const std::shared_ptr<TcpConnection> connection_;
  const ReceivedFrame request_;
};

TcpConnection::TcpConnection(Parts parts, FileDescriptor socket)
    : parts_(std::move(parts)),
      greeting_(std::move(socket), parts_.open),
      receiver_(parts_.pool.get(), /*choose_place=*/nullptr),
      give_up_(parts_.clock->Now() + kGreetingPatience) {}

SocketHandler::Interest TcpConnection::Proceed() {
  thread_ = std::this_thread::get_id();
  bool again = false;
  if (stage_ == Stage::kGreeting) Greet();
  if (stage_ == Stage::kOpen) again = Serve();
  if (stage_ == Stage::kLeaving) AwaitClose();
  return InterestNow(again);
}

SocketHandler::Interest TcpConnection::InterestNow(bool again) {
  Interest interest;
  interest.receive = true;
  switch (stage_) {
    case Stage::kGreeting:
      interest.send = greeting_.wants_to_send();
      break;
    case Stage::kOpen:
      reads_ = MayRead();
      interest.receive = reads_;
      interest.send = is_full_ || channel_->wants_to_send();
      interest.again = again;
      break;
    case Stage::kLeaving:
      break;
    case Stage::kEnded:
      interest.ended = true;
      break;
  }
  return interest;
}

// ---- The beginning ------------------------------------------------------

void TcpConnection::Greet() {
  if (is_closing_) return End(why());
  const absl::StatusOr<bool> is_whole = greeting_.Proceed();
  if (!is_whole.ok()) return End(is_whole.status());
  if (!*is_whole) {
    if (parts_.clock->Now() < give_up_) return;
    return End(absl::DeadlineExceededError(
        absl::StrCat("it has shown no token within ",
                     absl::FormatDuration(kGreetingPatience))));
  }
  channel_ = greeting_.ReleaseChannel();
  stage_ = Stage::kOpen;
  const absl::StatusOr<Caller> caller =
      parts_.admit(this, greeting_.token(), channel_->PeerCertificate());
  AddWelcome(caller.status(), &sender_);
  if (caller.ok()) {
    caller_ = *caller;
  } else {
    StopReading(absl::OkStatus());
  }
}

// ---- Requests -----------------------------------------------------------

bool TcpConnection::Serve() {
  Send();
  const bool again = ReadRequests();
  const bool is_done = stage_ == Stage::kOpen && is_closing_ && !is_full_ &&
                       Unanswered() == 0 && sender_.empty();
  if (is_done) BeginLeaving();
  return again;
}

bool TcpConnection::MayRead() {
  return stage_ == Stage::kOpen && !is_closing_ &&
         Unanswered() < kMaxUnanswered;
}

bool TcpConnection::ReadRequests() {
  for (int i = 0; i < kMaxPerTurn; ++i) {
    if (!MayRead()) return false;
    absl::StatusOr<std::optional<ReceivedFrame>> request =
        receiver_.Next(channel_.get());
    if (absl::IsInvalidArgument(request.status())) {
      StopReading(request.status());
      return false;
    }
    if (!request.ok()) {
      End(request.status());
      return false;
    }
    if (!request->has_value()) return false;
    Handle(**std::move(request));
  }
  return true;
}

void TcpConnection::Handle(ReceivedFrame request) {
  {
    absl::MutexLock lock(&mu_);
    ++in_service_;
  }
  const auto method = static_cast<DataMethod>(request.header.kind);
  const absl::Time deadline =
      parts_.clock->Now() + absl::Milliseconds(request.header.timeout_ms);
  Call call(shared_from_this(), std::move(request));
  const AnyMethod* const row = RowOf(method);
  // Dispatch refuses what is none.
  const absl::Status may =
      row == nullptr ? absl::OkStatus() : parts_.entrance->Check(*row, caller_);
  if (may.ok()) return Dispatch(method, std::move(call), deadline);
  if (absl::IsUnavailable(may)) StopReading(may);
  call.Fail(may);
}

// ---- Answers ------------------------------------------------------------

void TcpConnection::Answer(uint64_t call, absl::string_view fields,
                           absl::Cord data) {
  if (fields.size() > kMaxHeaderBytes || data.size() > kMaxPartBytes) {
    return AnswerError(
        call, absl::ResourceExhaustedError(absl::StrCat(
                  "tcp: an answer of ", fields.size(), " and ", data.size(),
                  " bytes of tensors; at most ", kMaxHeaderBytes, " and ",
                  kMaxPartBytes, " fit: ask for fewer slices")));
  }
  FrameHeader header;
  header.call = call;
  Add(header, fields, std::move(data));
}

void TcpConnection::AnswerError(uint64_t call, const absl::Status& status) {
  FrameHeader header;
  header.call = call;
  header.kind = static_cast<uint32_t>(status.code());
  Add(header, StatusToBytes(status), absl::Cord());
}

void TcpConnection::Add(FrameHeader header, absl::string_view fields,
                        absl::Cord data) {
  {
    absl::MutexLock lock(&mu_);
    --in_service_;
    unsent_.push_back(header.call);
    sender_.Add(header, fields, std::move(data));
  }
  if (thread_.load() == std::this_thread::get_id()) {
    // At once: the turn that waits for the shard may carry out others' requests
    // before it goes on.
    Send();
    const bool waits_for_less =
        stage_ == Stage::kOpen && reads_ && !is_full_ && !is_closing_;
    if (waits_for_less) return;
  }
  parts_.loop->Wake(this);
}

void TcpConnection::Send() {
  if (stage_ != Stage::kOpen) return;
  const absl::StatusOr<FrameSender::Progress> progress =
      sender_.Pump(channel_.get());
  if (!progress.ok()) return End(progress.status());
  is_full_ = *progress == FrameSender::Progress::kSocketFull;
}

int TcpConnection::Unanswered() {
  absl::MutexLock lock(&mu_);
  while (!unsent_.empty() && !sender_.Holds(unsent_.front())) {
    unsent_.pop_front();
  }
  return in_service_ + static_cast<int>(unsent_.size());
}

// ---- The end ------------------------------------------------------------

void TcpConnection::Close(const absl::Status& why) {
  StopReading(why);
  parts_.loop->Wake(this);
}

void TcpConnection::StopReading(const absl::Status& why) {
  absl::MutexLock lock(&mu_);
  if (!is_closing_.exchange(true)) why_ = why;
}

absl::Status TcpConnection::why() const {
  absl::MutexLock lock(&mu_);
  return why_;
}

// The system would take back answers on their way to the peer if the socket
// were closed with requests that nobody has read.
void TcpConnection::BeginLeaving() {
  stage_ = Stage::kLeaving;
  give_up_ = parts_.clock->Now() + kFarewell;
  shutdown(fd(), SHUT_WR);
}

void TcpConnection::AwaitClose() {
  char waste[kWasteBytes];
  const ssize_t received = recv(fd(), waste, sizeof(waste), MSG_DONTWAIT);
  const bool is_open =
      received > 0 || (received < 0 && (errno == EAGAIN || errno == EINTR));
  if (!is_open || parts_.clock->Now() >= give_up_) End(why());
}

void TcpConnection::End(const absl::Status& why) {
  stage_ = Stage::kEnded;
  // The peer is to know, also while the shard has a request yet.
  if (channel_ != nullptr) shutdown(fd(), SHUT_RDWR);
  parts_.on_end(this, why);
}

}  // namespace muster
