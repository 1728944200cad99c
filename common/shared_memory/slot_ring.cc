#include "common/shared_memory/slot_ring.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

bool RingWriter::Publish(const RingEntry& entry) {
  std::atomic<uint32_t>(&words)[kEntryWords] =
      ring_->entries[written_ % kNumSlots];
  words[0].store(entry.slot, std::memory_order_relaxed);
  words[1].store(entry.kind, std::memory_order_relaxed);
  words[2].store(entry.fields_bytes, std::memory_order_relaxed);
  words[3].store(entry.data_bytes, std::memory_order_relaxed);
  words[4].store(entry.timeout_ms, std::memory_order_relaxed);
  words[5].store(entry.is_finite, std::memory_order_relaxed);
  ++written_;
  ring_->published.store(written_, std::memory_order_seq_cst);
  // In the one order of these four: either this sees that the reader sleeps, or
  // the reader's last look, after StartSleep, sees the entry.
  return ring_->reader_sleeps.load(std::memory_order_seq_cst) != 0;
}

absl::StatusOr<std::optional<RingEntry>> RingReader::Take() {
  const uint32_t waiting =
      ring_->published.load(std::memory_order_acquire) - read_;
  if (waiting == 0) return std::nullopt;
  if (waiting > kNumSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory: the peer counts ", waiting,
                     " entries that were not read; there are ", kNumSlots));
  }
  const std::atomic<uint32_t>(&words)[kEntryWords] =
      ring_->entries[read_ % kNumSlots];
  RingEntry entry;
  entry.slot = words[0].load(std::memory_order_relaxed);
  entry.kind = words[1].load(std::memory_order_relaxed);
  entry.fields_bytes = words[2].load(std::memory_order_relaxed);
  entry.data_bytes = words[3].load(std::memory_order_relaxed);
  entry.timeout_ms = words[4].load(std::memory_order_relaxed);
  entry.is_finite = words[5].load(std::memory_order_relaxed);
  ++read_;
  return entry;
}

}  // namespace muster
