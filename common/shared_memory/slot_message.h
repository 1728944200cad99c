#ifndef COMMON_SHARED_MEMORY_SLOT_MESSAGE_H_
#define COMMON_SHARED_MEMORY_SLOT_MESSAGE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "common/rpc/frame_fields.h"
#include "common/rpc/parameter_link.h"
#include "common/shared_memory/slot_ring.h"

namespace muster {

// A message on its way through a slot: the fields of a protobuf message, or of
// an error, as bytes, and beside them the tensor bytes of a frame.
struct SlotMessage {
  std::string fields;
  absl::Cord data;
};

template <typename Header>
SlotMessage ToSlotMessage(const Frame<Header>& frame) {
  return {frame.header.SerializeAsString(), frame.data};
}
template <typename Message>
SlotMessage ToSlotMessage(const Message& message) {
  return {message.SerializeAsString(), absl::Cord()};
}

// Errors: InvalidArgument (kDamaged), naming the type, unless `message` is one.
template <typename Parsed>
absl::Status ParseSlotMessage(SlotMessage message, Parsed* parsed) {
  return ParseFields("shared memory", message.fields, std::move(message.data),
                     parsed);
}

// Whether a slot holds it. REQUIRES: the slot's sizes as in RingEntry.
inline bool FitsSlot(uint64_t fields_bytes, uint64_t data_bytes) {
  return fields_bytes <= kSlotFieldsBytes && data_bytes <= kSlotDataBytes;
}

// Writes `message` to a slot, in which its data may lie already.
// REQUIRES: it fits.
void WriteSlot(const SlotMessage& message, char* segment, uint32_t slot);

// The same of data that lie elsewhere. Returns whether they, as float32, were
// seen to be finite on the way; false also if a chunk cuts a value.
bool WriteSlotAndLook(const SlotMessage& message, char* segment, uint32_t slot);

}  // namespace muster

#endif  // COMMON_SHARED_MEMORY_SLOT_MESSAGE_H_
