#include "common/shared_memory/slot_message.h"

#include <cstring>

#include "common/base/cord_bytes.h"

namespace muster {

void WriteSlot(const SlotMessage& message, char* segment, uint32_t slot) {
  std::memcpy(FieldsOf(segment, slot), message.fields.data(),
              message.fields.size());
  CopyCord(message.data, DataOf(segment, slot));
}

}  // namespace muster
