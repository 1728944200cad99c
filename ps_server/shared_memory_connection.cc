#include "ps_server/shared_memory_connection.h"

#include <sys/socket.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame_codec.h"
#include "common/rpc/status_conversion.h"
#include "common/shared_memory/doorbell.h"
#include "grpcpp/support/slice.h"
#include "ps_server/serve_call.h"

namespace muster {
namespace {

// A wait that is over is begun anew; the peer's end is noticed at once.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

void DeleteCord(void* cord) { delete static_cast<absl::Cord*>(cord); }

// A slice over `bytes`, which is one piece, and holds it.
grpc::Slice ShareCord(absl::Cord bytes) {
  auto held = std::make_unique<absl::Cord>(std::move(bytes));
  const absl::string_view piece = held->Flatten();
  return grpc::Slice(const_cast<char*>(piece.data()), piece.size(), &DeleteCord,
                     held.release());
}

}  // namespace

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
  for (;;) {
    const RingEvent event = AwaitEntry(&requests_, socket_, kLongestWait);
    if (event == RingEvent::kPeerGone) return absl::OkStatus();
    if (event == RingEvent::kTimeout) continue;
    ASSIGN_OR_RETURN(const std::optional<RingEntry> entry, requests_.Take());
    if (!entry.has_value()) continue;
    RETURN_IF_ERROR(Accept(*entry));
    Pass(*entry, CopyRequest(*entry));
  }
}

absl::Status SharedMemoryConnection::Accept(const RingEntry& entry) {
  if (entry.slot >= kNumSlots || entry.size_bytes > kSlotBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: a request of ", entry.size_bytes,
                     " bytes in slot ", entry.slot, "; wanted at most ",
                     kSlotBytes, " in a slot below ", kNumSlots));
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

grpc::ByteBuffer SharedMemoryConnection::CopyRequest(const RingEntry& entry) {
  const char* const from = SlotOf(segment_.data(), entry.slot);
  const grpc::Slice slice =
      ShareCord(parts_.buffers->Make(entry.size_bytes, [&](char* to) {
        std::memcpy(to, from, entry.size_bytes);
      }));
  return grpc::ByteBuffer(&slice, 1);
}

void SharedMemoryConnection::Pass(const RingEntry& entry,
                                  const grpc::ByteBuffer& request) {
  const uint32_t slot = entry.slot;
  const absl::Time deadline =
      parts_.clock->Now() + absl::Milliseconds(entry.timeout_ms);
  switch (static_cast<SharedMethod>(entry.kind)) {
    case SharedMethod::kLoad: {
      absl::StatusOr<Frame<LoadPart>> frame = DecodeFrame<LoadPart>(request);
      if (!frame.ok()) return AnswerError(slot, frame.status());
      return parts_.shard->Load(*std::move(frame), deadline,
                                AnswerMessage<LoadReply>(slot));
    }
    case SharedMethod::kPull: {
      const absl::StatusOr<PullRequest> pull = ParseRaw<PullRequest>(request);
      if (!pull.ok()) return AnswerError(slot, pull.status());
      return parts_.shard->Pull(*pull, deadline, AnswerFrame<PullReply>(slot));
    }
    case SharedMethod::kPush: {
      absl::StatusOr<Frame<PushPart>> frame = DecodeFrame<PushPart>(request);
      if (!frame.ok()) return AnswerError(slot, frame.status());
      return parts_.shard->Push(*std::move(frame), deadline,
                                AnswerFrame<PushReply>(slot));
    }
    case SharedMethod::kReadSnapshot: {
      const absl::StatusOr<ReadSnapshotRequest> read =
          ParseRaw<ReadSnapshotRequest>(request);
      if (!read.ok()) return AnswerError(slot, read.status());
      return parts_.shard->ReadSnapshot(*read, deadline,
                                        AnswerFrame<SnapshotPart>(slot));
    }
  }
  AnswerError(slot, absl::UnimplementedError(absl::StrCat(
                        "shared memory: there is no request ", entry.kind)));
}

template <typename Reply>
ReplyCallback<Reply> SharedMemoryConnection::AnswerMessage(uint32_t slot) {
  return [self = shared_from_this(), slot](const absl::StatusOr<Reply>& reply) {
    if (!reply.ok()) return self->AnswerError(slot, reply.status());
    self->Answer(slot, EncodeFrame(*reply, absl::Cord()));
  };
}

template <typename Header>
ReplyCallback<Frame<Header>> SharedMemoryConnection::AnswerFrame(
    uint32_t slot) {
  return [self = shared_from_this(),
          slot](const absl::StatusOr<Frame<Header>>& reply) {
    if (!reply.ok()) return self->AnswerError(slot, reply.status());
    self->Answer(slot, EncodeFrame(reply->header, reply->data));
  };
}

void SharedMemoryConnection::Answer(uint32_t slot,
                                    const grpc::ByteBuffer& answer) {
  std::vector<grpc::Slice> slices;
  if (answer.Length() > kSlotBytes) {
    return AnswerError(
        slot, absl::ResourceExhaustedError(
                  absl::StrCat("shared memory: an answer of ", answer.Length(),
                               " bytes; a slot holds ", kSlotBytes)));
  }
  const grpc::Status dumped = answer.Dump(&slices);
  if (!dumped.ok()) return AnswerError(slot, ToAbslStatus(dumped));
  char* to = SlotOf(segment_.data(), slot);
  for (const grpc::Slice& slice : slices) {
    std::memcpy(to, slice.begin(), slice.size());
    to += slice.size();
  }
  Publish({slot, /*kind=*/0, static_cast<uint32_t>(answer.Length())});
}

void SharedMemoryConnection::AnswerError(uint32_t slot,
                                         const absl::Status& status) {
  const std::string bytes = StatusToBytes(status);
  std::memcpy(SlotOf(segment_.data(), slot), bytes.data(), bytes.size());
  Publish({slot, static_cast<uint32_t>(status.code()),
           static_cast<uint32_t>(bytes.size())});
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
