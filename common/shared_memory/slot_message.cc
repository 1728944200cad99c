#include "common/shared_memory/slot_message.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/cord_bytes.h"
#include "common/base/finite.h"

namespace muster {
namespace {

bool IsAligned(const char* data) {
  return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0;
}

// Returns whether `bytes` were seen to be finite values.
bool CopyChunk(absl::string_view bytes, char* to) {
  const size_t count = bytes.size() / sizeof(float);
  const bool is_whole = bytes.size() % sizeof(float) == 0 && IsAligned(to);
  auto* const values = reinterpret_cast<float*>(to);
  if (is_whole && IsAligned(bytes.data())) {
    const auto* const from = reinterpret_cast<const float*>(bytes.data());
    return CopyFinite(absl::MakeConstSpan(from, count), values);
  }
  std::memcpy(to, bytes.data(), bytes.size());
  return is_whole && FirstNonFinite(absl::MakeConstSpan(values, count)) < 0;
}

void WriteFields(const SlotMessage& message, char* segment, uint32_t slot) {
  std::memcpy(FieldsOf(segment, slot), message.fields.data(),
              message.fields.size());
}

}  // namespace

void WriteSlot(const SlotMessage& message, char* segment, uint32_t slot) {
  WriteFields(message, segment, slot);
  CopyCord(message.data, DataOf(segment, slot));
}

bool WriteSlotAndLook(const SlotMessage& message, char* segment,
                      uint32_t slot) {
  WriteFields(message, segment, slot);
  char* to = DataOf(segment, slot);
  bool is_finite = true;
  for (const absl::string_view chunk : message.data.Chunks()) {
    is_finite &= CopyChunk(chunk, to);
    to += chunk.size();
  }
  return is_finite;
}

}  // namespace muster
