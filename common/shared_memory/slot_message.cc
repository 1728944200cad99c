#include "common/shared_memory/slot_message.h"

#include <cstring>

#include "absl/strings/string_view.h"

namespace muster {

void WriteSlot(const SlotMessage& message, char* segment, uint32_t slot) {
  std::memcpy(FieldsOf(segment, slot), message.fields.data(),
              message.fields.size());
  char* to = DataOf(segment, slot);
  for (const absl::string_view chunk : message.data.Chunks()) {
    // What was made in the slot is there.
    if (to != chunk.data()) std::memcpy(to, chunk.data(), chunk.size());
    to += chunk.size();
  }
}

}  // namespace muster
