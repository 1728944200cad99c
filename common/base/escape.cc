#include "common/base/escape.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Length of the well-formed UTF-8 character of two or more bytes at the start
// of `text`, or 0. U+0080 to U+009F are control characters and give 0.
size_t MultibyteLength(absl::string_view text) {
  const auto byte = [&text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  size_t length = 0;
  if (byte(0) >= 0xc2 && byte(0) <= 0xdf) length = 2;
  if (byte(0) >= 0xe0 && byte(0) <= 0xef) length = 3;
  if (byte(0) >= 0xf0 && byte(0) <= 0xf4) length = 4;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;
  return length;
}

}  // namespace

std::string EscapeForLog(absl::string_view text, size_t max_length) {
  std::string escaped;
  while (!text.empty() && escaped.size() < max_length) {
    const size_t length = MultibyteLength(text);
    if (length > 0) {
      absl::StrAppend(&escaped, text.substr(0, length));
    } else if (text[0] >= 0x20 && text[0] < 0x7f) {
      escaped.push_back(text[0]);
    } else {
      absl::StrAppend(&escaped, absl::CHexEscape(text.substr(0, 1)));
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  if (!text.empty()) escaped += "...";
  return escaped;
}

}  // namespace muster
