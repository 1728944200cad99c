#include "common/summary/event_record.h"

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"

namespace muster {
namespace {

template <typename T>
std::string LittleEndian(T value) {
  std::string bytes(sizeof(T), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

uint32_t MaskedCrc32c(absl::string_view data) {
  constexpr uint32_t kMaskDelta = 0xa282ead8;
  const uint32_t crc = Crc32c(data);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

void AppendRecord(absl::string_view data, std::string* out) {
  const std::string length = LittleEndian(uint64_t{data.size()});
  absl::StrAppend(out, length, LittleEndian(MaskedCrc32c(length)), data,
                  LittleEndian(MaskedCrc32c(data)));
}

}  // namespace muster
