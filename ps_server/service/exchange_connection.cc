#include "ps_server/service/exchange_connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/protocol.h"
#include "common/rpc/status_conversion.h"
#include "grpcpp/support/slice.h"
#include "proto/parameter_service.pb.h"

namespace muster {
namespace {

constexpr size_t kMaxAnswerBytes = kMaxPartBytes + kMaxHeaderBytes;

grpc::ByteBuffer EncodeError(ExchangeReply header, const absl::Status& status) {
  *header.mutable_error() = StatusToDetails(status);
  const grpc::Slice slice(header.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer EncodeAnswer(uint64_t call, DataMethod method,
                              const absl::StatusOr<grpc::ByteBuffer>& reply) {
  ExchangeReply header;
  header.set_call(call);
  if (!reply.ok()) return EncodeError(std::move(header), reply.status());
  grpc::ByteBuffer bytes = EncodeExchange(header, {method, *reply});
  if (bytes.Length() <= kMaxAnswerBytes) return bytes;
  // gRPC would refuse it and end the stream.
  return EncodeError(std::move(header),
                     absl::ResourceExhaustedError(absl::StrCat(
                         "an answer of ", bytes.Length(), " bytes; at most ",
                         kMaxAnswerBytes, " fit: ask for fewer slices")));
}

}  // namespace

ExchangeConnection::ExchangeConnection(Parts parts)
    : parts_(std::move(parts)) {}

void ExchangeConnection::Start() { StartRead(&incoming_); }

// ---- Requests -----------------------------------------------------------

void ExchangeConnection::OnReadDone(bool ok) {
  bool taken = false;
  grpc::ByteBuffer bytes;
  {
    absl::MutexLock lock(&mu_);
    // Before anybody can read on, into the same place.
    bytes.Swap(&incoming_);
    reading_ = false;
    taken = ok && !ending_;
    if (taken) {
      ++unanswered_;
    } else {
      ending_ = true;
    }
  }
  if (!taken) return FinishIfIdle();
  // First, so that another thread can go on: this one may have to carry out
  // what other streams ask of the shard, too.
  ReadOn();
  Handle(bytes);
}

void ExchangeConnection::ReadOn() {
  {
    absl::MutexLock lock(&mu_);
    if (reading_ || ending_ || unanswered_ >= kMaxUnanswered) return;
    reading_ = true;
    // Keeps the stream from being finished meanwhile.
    ++starting_reads_;
  }
  StartRead(&incoming_);
  {
    absl::MutexLock lock(&mu_);
    --starting_reads_;
  }
  FinishIfIdle();
}

void ExchangeConnection::Handle(const grpc::ByteBuffer& bytes) {
  ExchangeRequest header;
  ExchangeBody body;
  absl::Status status = DecodeExchange(bytes, &header, &body);
  if (status.ok() && !body.message.Valid()) {
    status = absl::InvalidArgumentError(
        absl::StrCat("call ", header.call(), " has no request"));
  }
  if (!status.ok()) {
    {
      absl::MutexLock lock(&mu_);
      --unanswered_;
    }
    return End(status);
  }
  const AnyMethod* const row = RowOf(body.method);
  const absl::Status may = Check(row);
  if (!may.ok()) return Answer(header.call(), body.method, may);
  const absl::Time deadline =
      header.timeout_ms() == 0
          ? absl::InfiniteFuture()
          : parts_.clock->Now() + absl::Milliseconds(header.timeout_ms());
  PassDataCall(
      parts_.target, body, {parts_.entrance, row, &parts_.caller}, deadline,
      [self = shared_from_this(), call = header.call(),
       method = body.method](const absl::StatusOr<grpc::ByteBuffer>& reply) {
        self->Answer(call, method, reply);
      });
}

absl::Status ExchangeConnection::Check(const AnyMethod* row) {
  // Dispatch refuses it.
  if (row == nullptr) return absl::OkStatus();
  const absl::Status may = parts_.entrance->Check(*row, parts_.caller);
  if (absl::IsUnavailable(may)) End(may);
  return may;
}

// ---- Answers ------------------------------------------------------------

void ExchangeConnection::Answer(uint64_t call, DataMethod method,
                                const absl::StatusOr<grpc::ByteBuffer>& reply) {
  WriteOrQueue(EncodeAnswer(call, method, reply));
}

void ExchangeConnection::WriteOrQueue(grpc::ByteBuffer bytes) {
  {
    absl::MutexLock lock(&mu_);
    if (broken_ || finished_) return;
    if (writing_) {
      answers_.push_back(std::move(bytes));
      return;
    }
    writing_ = true;
  }
  // Nobody else uses it while writing_ is true, and nobody ends the stream.
  outgoing_.Swap(&bytes);
  StartWrite(&outgoing_);
}

void ExchangeConnection::OnWriteDone(bool ok) {
  outgoing_.Clear();
  bool more = false;
  {
    absl::MutexLock lock(&mu_);
    --unanswered_;
    if (!ok) Break();
    more = !answers_.empty();
    if (more) {
      outgoing_.Swap(&answers_.front());
      answers_.pop_front();
    } else {
      writing_ = false;
    }
  }
  if (more) StartWrite(&outgoing_);
  ReadOn();
  FinishIfIdle();
}

// ---- The end ------------------------------------------------------------

void ExchangeConnection::Break() {
  ending_ = true;
  broken_ = true;
  answers_.clear();
}

void ExchangeConnection::OnCancel() {
  {
    absl::MutexLock lock(&mu_);
    Break();
  }
  FinishIfIdle();
}

void ExchangeConnection::End(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
    why_.Update(why);
  }
  FinishIfIdle();
}

void ExchangeConnection::FinishIfIdle() {
  absl::Status why;
  {
    absl::MutexLock lock(&mu_);
    const bool idle = !writing_ && starting_reads_ == 0 &&
                      (broken_ || (ending_ && unanswered_ == 0));
    if (!idle || std::exchange(finished_, true)) return;
    why = why_;
  }
  Finish(ToGrpcStatus(why));
}

void ExchangeConnection::OnDone() {
  // The owner lets go.
  const std::shared_ptr<ExchangeConnection> self = shared_from_this();
  parts_.done(this);
}

}  // namespace muster
