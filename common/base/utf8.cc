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

// Bytes of the well-formed character at the start of `text`; 0 if there is
// none.
size_t CharacterLength(absl::string_view text) {
  // By the length of a sequence: the least code that needs it.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = SequenceLength(first);
  if (length == 0 || length > text.size()) return 0;
  uint32_t code = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    code = (code << 6) | (byte & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[length] || code > 0x10ffff || is_surrogate) return 0;
  return length;
}

// The value of an upper-case hexadecimal digit; 16 of anything else.
unsigned HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Utf8OfBytes(absl::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  while (!bytes.empty()) {
    const size_t length = CharacterLength(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (length == 0) {
      text += {'\\', 'x', kDigits[first >> 4], kDigits[first & 15]};
    } else {
      if (first == '\\') text.push_back('\\');
      text.append(bytes.data(), length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string BytesOfUtf8(absl::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 1 < text.size();
    if (escaped && text[i + 1] == '\\') {
      ++i;
    } else if (escaped && text[i + 1] == 'x' && i + 3 < text.size() &&
               HexValue(text[i + 2]) < 16 && HexValue(text[i + 3]) < 16) {
      bytes.push_back(static_cast<char>(HexValue(text[i + 2]) << 4 |
                                        HexValue(text[i + 3])));
      i += 3;
      continue;
    }
    bytes.push_back(text[i]);
  }
  return bytes;
}

}  // namespace muster
