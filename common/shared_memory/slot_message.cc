#include "common/shared_memory/slot_message.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
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

// Calls copy(chunk, to) for each chunk of the data.
template <typename Copy>
void Write(const SlotMessage& message, char* segment, uint32_t slot,
           const Copy& copy) {
  std::memcpy(FieldsOf(segment, slot), message.fields.data(),
              message.fields.size());
  char* to = DataOf(segment, slot);
  for (const absl::string_view chunk : message.data.Chunks()) {
    copy(chunk, to);
    to += chunk.size();
  }
}

}  // namespace

void WriteSlot(const SlotMessage& message, char* segment, uint32_t slot) {
  Write(message, segment, slot, [](absl::string_view chunk, char* to) {
    // What was made in the slot is there.
    if (to != chunk.data()) std::memcpy(to, chunk.data(), chunk.size());
  });
}

bool WriteSlotAndLook(const SlotMessage& message, char* segment,
                      uint32_t slot) {
  bool is_finite = true;
  Write(message, segment, slot, [&](absl::string_view chunk, char* to) {
    is_finite &= CopyChunk(chunk, to);
  });
  return is_finite;
}

}  // namespace muster
