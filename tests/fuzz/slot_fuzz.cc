// The rings and slots of shared memory, of which every byte may be the
// other side's. The input: the side, the number of entries and what is added to
// their count, then each entry and what lies in its slot.
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "common/shared_memory/memory_segment.h"
#include "common/shared_memory/slot_message.h"
#include "common/shared_memory/slot_ring.h"
#include "ps_server/service/shared_memory_connection.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/ready_shard.h"
#include "worker/client/link/shared_memory_caller.h"

namespace muster {
namespace {

// Takes at most `size` bytes away.
absl::string_view Take(size_t size, absl::string_view* input) {
  const absl::string_view taken = input->substr(0, size);
  input->remove_prefix(taken.size());
  return taken;
}

absl::string_view TakeSized(absl::string_view* input) {
  const size_t low = TakeByte(input);
  return Take(low | size_t{TakeByte(input)} << 8, input);
}

void WriteEntries(absl::string_view input, char* segment, SharedRing* ring) {
  const uint32_t entries = TakeByte(&input) % (kNumSlots + 1);
  const uint32_t more = TakeByte(&input);
  RingWriter writer(ring);
  for (uint32_t i = 0; i < entries; ++i) {
    RingEntry entry;
    const absl::string_view bytes = Take(sizeof(entry), &input);
    std::memcpy(&entry, bytes.data(), bytes.size());
    const uint32_t slot = entry.slot % kNumSlots;
    const absl::string_view fields = TakeSized(&input);
    std::memcpy(FieldsOf(segment, slot), fields.data(), fields.size());
    const absl::string_view data = TakeSized(&input);
    std::memcpy(DataOf(segment, slot), data.data(), data.size());
    writer.Publish(entry);
  }
  ring->published += more;
}

// A segment of zeros that two sides have, and a socket whose peer is gone: who
// has read all entries ends.
struct Shared {
  char* segment;
  SharedPeer peer;
};

Shared NewShared() {
  // Making one takes longer than all else.
  static const auto& segment =
      *new MemorySegment(*MemorySegment::Create(kSegmentBytes));
  std::memset(segment.data(), 0, kSegmentBytes);
  auto other =
      MemorySegment::Adopt(FileDescriptor(dup(segment.fd())), kSegmentBytes);
  Want(other.ok(), "the segment again");
  int ends[2];
  Want(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0,
       "sockets");
  close(ends[0]);
  return {segment.data(), {FileDescriptor(ends[1]), *std::move(other)}};
}

// The worker's bytes, to the ps.
void TryRequests(absl::string_view input, Shared shared) {
  ReadyShard shard;
  WriteEntries(input, shared.segment, &RingsOf(shared.segment)->requests);
  SharedMemoryConnection::Parts parts;
  parts.shard = &shard.server();
  parts.clock = &shard.clock();
  parts.caller.transport = Transport::kSharedMemory;
  std::make_shared<SharedMemoryConnection>(std::move(parts),
                                           std::move(shared.peer.socket),
                                           std::move(shared.peer.segment))
      ->Serve()
      .IgnoreError();
}

// The ps's bytes, to a worker that waits for three answers.
void TryAnswers(absl::string_view input, Shared shared) {
  constexpr int kCalls = 3;
  const MonotonicClock clock;
  const auto caller = std::make_shared<SharedMemoryCaller>(
      PeerName{"/job:ps/task:0", "here:1"}, std::move(shared.peer), &clock);
  int answers = 0;
  for (int i = 0; i < kCalls; ++i) {
    caller->Call(DataMethod::kPull, {"request", absl::Cord("data")},
                 absl::InfiniteFuture(), [&](absl::StatusOr<SlotMessage> got) {
                   ++answers;
                   Frame<PullReply> reply;
                   if (!got.ok()) return;
                   ParseSlotMessage(*std::move(got), &reply).IgnoreError();
                 });
  }
  WriteEntries(input, shared.segment, &RingsOf(shared.segment)->answers);
  caller->Fail(caller->Run());
  Want(answers == kCalls, "one answer to each call");
}

}  // namespace

void TryInput(absl::string_view input) {
  if (TakeByte(&input) % 2 == 0) {
    TryRequests(input, NewShared());
  } else {
    TryAnswers(input, NewShared());
  }
}

}  // namespace muster
