#include "common/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace muster {
namespace {

// Bytes of the sequence that `first` begins; 0 if none does.
size_t SequenceLength(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc0) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf8 ? 4 : 0;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  // By the length of a sequence: the least code that needs it.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = SequenceLength(first);
    if (length == 0 || length > text.size()) return false;
    uint32_t code = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xc0) != 0x80) return false;
      code = (code << 6) | (byte & 0x3f);
    }
    const bool is_surrogate = code >= 0xd800 && code < 0xe000;
    if (code < kLeast[length] || code > 0x10ffff || is_surrogate) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace muster
