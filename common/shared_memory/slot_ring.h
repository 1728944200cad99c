#ifndef COMMON_SHARED_MEMORY_SLOT_RING_H_
#define COMMON_SHARED_MEMORY_SLOT_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/rpc/protocol.h"

namespace muster {

// The layout of a segment: two rings of entries, each written by one side
// and read by the other, and the slots. A slot holds one message, first the
// request and then its answer; an entry hands it to the other side.
inline constexpr uint32_t kNumSlots = 8;
// A slot: the message's fields, then, on a page of their own, its tensor bytes.
inline constexpr size_t kSlotFieldsBytes = kMaxHeaderBytes;
inline constexpr size_t kSlotDataBytes = kMaxPartBytes;
inline constexpr size_t kSlotBytes = kSlotFieldsBytes + kSlotDataBytes;
inline constexpr size_t kSlotsOffset = 4096;
inline constexpr size_t kSegmentBytes = kSlotsOffset + kNumSlots * kSlotBytes;

// A message in a slot.
struct RingEntry {
  uint32_t slot = 0;
  // The DataMethod of a request, the absl::StatusCode of an answer.
  uint32_t kind = 0;
  // The message's size; an error's is that of a StatusDetails.
  uint32_t fields_bytes = 0;
  uint32_t data_bytes = 0;
  // The time that the caller of a request waits. 0 in an answer.
  uint32_t timeout_ms = 0;
  // 1 if its writer has seen that the data, as float32, are all finite. 0: they
  // are not, or nobody has looked.
  uint32_t is_finite = 0;
};

inline constexpr int kEntryWords = 6;

// One ring, in the segment; all zero at the start. Every field may hold
// anything if the other process is hostile.
struct SharedRing {
  // Entries that were written since the start, modulo 2^32.
  alignas(64) std::atomic<uint32_t> published;
  // 1 while the reader waits for a bell.
  alignas(64) std::atomic<uint32_t> reader_sleeps;
  alignas(64) std::atomic<uint32_t> entries[kNumSlots][kEntryWords];
};

// At the start of the segment.
struct SharedRings {
  SharedRing requests;
  SharedRing answers;
};
static_assert(sizeof(SharedRings) <= kSlotsOffset);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert((kNumSlots & (kNumSlots - 1)) == 0,
              "the counter wraps at 2^32, in the middle of no round");

inline SharedRings* RingsOf(char* segment) {
  return reinterpret_cast<SharedRings*>(segment);
}
// REQUIRES: slot < kNumSlots.
inline char* FieldsOf(char* segment, uint32_t slot) {
  return segment + kSlotsOffset + slot * kSlotBytes;
}
inline char* DataOf(char* segment, uint32_t slot) {
  return FieldsOf(segment, slot) + kSlotFieldsBytes;
}

// The side that writes entries. One thread at a time.
class RingWriter {
 public:
  // `ring` outlives this.
  explicit RingWriter(SharedRing* ring) : ring_(ring) {}

  // Hands over a slot and what was written to it before. Returns whether the
  // reader sleeps and wants a bell. There is always room: a slot is in at most
  // one entry that was not read.
  bool Publish(const RingEntry& entry);

 private:
  SharedRing* const ring_;
  uint32_t written_ = 0;
};

// The side that reads them. One thread at a time.
class RingReader {
 public:
  explicit RingReader(SharedRing* ring) : ring_(ring) {}

  bool HasEntry() const {
    return ring_->published.load(std::memory_order_seq_cst) != read_;
  }

  // The next entry, copied before anybody looks at it; none if there is none.
  // Errors: InvalidArgument if the writer counts more than can be there. What
  // the entry says is not checked.
  absl::StatusOr<std::optional<RingEntry>> Take();

  // From StartSleep on the writer rings. HasEntry is to be asked once more
  // between it and the sleep.
  void StartSleep() {
    ring_->reader_sleeps.store(1, std::memory_order_seq_cst);
  }
  void EndSleep() { ring_->reader_sleeps.store(0, std::memory_order_relaxed); }

 private:
  SharedRing* const ring_;
  uint32_t read_ = 0;
};

}  // namespace muster

#endif  // COMMON_SHARED_MEMORY_SLOT_RING_H_
