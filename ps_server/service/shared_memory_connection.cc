#include "ps_server/service/shared_memory_connection.h"

#include <sys/socket.h>

#include <functional>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame/data_method.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/doorbell.h"
#include "ps_server/service/data_call.h"
#include "ps_server/service/strand.h"

namespace muster {
namespace {

// A wait that is over is begun anew; the peer's end is noticed at once.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

}  // namespace

// The CallAdapter of one request.
class SharedMemoryConnection::Call {
 public:
  // `connection` outlives this.
  Call(SharedMemoryConnection* connection, const RingEntry& entry)
      : connection_(*connection), entry_(entry) {}

  DataLink& shard() { return *connection_.parts_.shard; }
  CallCheck check() const {
    return {connection_.parts_.entrance,
            RowOf(static_cast<DataMethod>(entry_.kind)),
            &connection_.parts_.caller};
  }
  ValueMemory Memory() { return connection_.SlotMemory(entry_.slot); }
  PushContext ContextOf(const PushPart& push) {
    // Values of another size would overtake the gradient that lies there.
    return {push.codec() == push.values_codec() ? Memory() : nullptr,
            entry_.is_finite != 0};
  }

  template <typename Request>
  absl::StatusOr<Request> Read() {
    Request request;
    RETURN_IF_ERROR(
        ParseSlotMessage(connection_.ReadRequest(entry_), &request));
    return request;
  }
  template <typename Reply>
  ReplyCallback<Reply> Answer() {
    return connection_.AnswerIn<Reply>(entry_.slot);
  }
  void Fail(const absl::Status& status) {
    connection_.AnswerError(entry_.slot, status);
  }

 private:
  SharedMemoryConnection& connection_;
  const RingEntry entry_;
};

SharedMemoryConnection::SharedMemoryConnection(Parts parts,
                                               FileDescriptor socket,
                                               MemorySegment segment)
    : parts_(std::move(parts)),
      socket_(std::move(socket)),
      segment_(std::move(segment)),
      requests_(&RingsOf(segment_.data())->requests),
      answers_(&RingsOf(segment_.data())->answers) {}

void SharedMemoryConnection::Shutdown() { shutdown(socket_.get(), SHUT_RDWR); }

absl::Status SharedMemoryConnection::Serve() {
  const std::function<void()> hook = [this] {
    if (failure_.ok()) failure_ = TakeRequest();
  };
  const Strand::YieldHook yield_hook = parts_.shard->YieldTo(&hook);
  for (;;) {
    const RingEvent event = AwaitEntry(&requests_, socket_, kLongestWait);
    if (event == RingEvent::kPeerGone) return absl::OkStatus();
    if (event == RingEvent::kTimeout) continue;
    RETURN_IF_ERROR(TakeRequest());
    RETURN_IF_ERROR(failure_);
  }
}

absl::Status SharedMemoryConnection::TakeRequest() {
  ASSIGN_OR_RETURN(const std::optional<RingEntry> entry, requests_.Take());
  if (!entry.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(Accept(*entry));
  const auto method = static_cast<DataMethod>(entry->kind);
  Call call(this, *entry);
  const AnyMethod* const row = RowOf(method);
  // Dispatch refuses what is none.
  const absl::Status may = row == nullptr
                               ? absl::OkStatus()
                               : parts_.entrance->Check(*row, parts_.caller);
  if (!may.ok()) {
    call.Fail(may);
    return absl::IsUnavailable(may) ? may : absl::OkStatus();
  }
  const absl::Time deadline =
      parts_.clock->Now() + absl::Milliseconds(entry->timeout_ms);
  Dispatch(method, call, deadline);
  return absl::OkStatus();
}

absl::Status SharedMemoryConnection::Accept(const RingEntry& entry) {
  if (entry.slot >= kNumSlots ||
      !FitsSlot(entry.fields_bytes, entry.data_bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: a request of ", entry.fields_bytes,
                     " and ", entry.data_bytes, " bytes in slot ", entry.slot,
                     "; wanted at most ", kSlotFieldsBytes, " and ",
                     kSlotDataBytes, " in a slot below ", kNumSlots));
  }
  absl::MutexLock lock(&mu_);
  if (in_service_[entry.slot]) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: a second request in slot ", entry.slot,
                     " before the answer to the first"));
  }
  in_service_[entry.slot] = true;
  return absl::OkStatus();
}

SlotMessage SharedMemoryConnection::ReadRequest(const RingEntry& entry) {
  SlotMessage request;
  request.fields.assign(FieldsOf(segment_.data(), entry.slot),
                        entry.fields_bytes);
  if (entry.data_bytes > 0) {
    // Holds the memory, not the slot, which nobody reads after the answer.
    request.data = absl::MakeCordFromExternal(
        {DataOf(segment_.data(), entry.slot), entry.data_bytes},
        [self = shared_from_this()] {});
  }
  return request;
}

ValueMemory SharedMemoryConnection::SlotMemory(uint32_t slot) {
  return [data = DataOf(segment_.data(), slot)](
             size_t size_bytes, absl::FunctionRef<void(char*)> fill) {
    fill(data);
    return absl::MakeCordFromExternal({data, size_bytes}, [] {});
  };
}

template <typename Reply>
ReplyCallback<Reply> SharedMemoryConnection::AnswerIn(uint32_t slot) {
  return [self = shared_from_this(), slot](const absl::StatusOr<Reply>& reply) {
    if (!reply.ok()) return self->AnswerError(slot, reply.status());
    self->Answer(slot, ToSlotMessage(*reply));
  };
}

void SharedMemoryConnection::Answer(uint32_t slot, const SlotMessage& answer) {
  if (!FitsSlot(answer.fields.size(), answer.data.size())) {
    return AnswerError(
        slot, absl::ResourceExhaustedError(absl::StrCat(
                  "shared memory: an answer of ", answer.fields.size(), " and ",
                  answer.data.size(), " bytes of tensors; a slot holds ",
                  kSlotFieldsBytes, " and ", kSlotDataBytes)));
  }
  WriteSlot(answer, segment_.data(), slot);
  Publish({slot, /*kind=*/0, static_cast<uint32_t>(answer.fields.size()),
           static_cast<uint32_t>(answer.data.size())});
}

void SharedMemoryConnection::AnswerError(uint32_t slot,
                                         const absl::Status& status) {
  const SlotMessage error = {StatusToBytes(status), absl::Cord()};
  WriteSlot(error, segment_.data(), slot);
  Publish({slot, static_cast<uint32_t>(status.code()),
           static_cast<uint32_t>(error.fields.size())});
}

void SharedMemoryConnection::Publish(const RingEntry& entry) {
  bool wants_bell = false;
  {
    absl::MutexLock lock(&mu_);
    in_service_[entry.slot] = false;
    wants_bell = answers_.Publish(entry);
  }
  if (wants_bell) RingBell(socket_);
}

}  // namespace muster
