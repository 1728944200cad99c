#include "common/checkpoint/json_cursor.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

void AppendUtf8(uint32_t code, std::string* result) {
  const auto add = [result](uint32_t byte) {
    result->push_back(static_cast<char>(byte));
  };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | (code >> 6));
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3f));
    add(0x80 | ((code >> 6) & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

// Bytes of the sequence that `first` starts, 0 if none does.
size_t SequenceLength(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

// Is the second byte of a sequence one that `first` allows?
bool SecondByteAllowed(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xe0:
      return second >= 0xa0;  // else overlong
    case 0xed:
      return second < 0xa0;  // else a surrogate
    case 0xf0:
      return second >= 0x90;  // else overlong
    case 0xf4:
      return second < 0x90;  // else beyond U+10FFFF
    default:
      return true;
  }
}

}  // namespace

absl::Status JsonCursor::Error(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat("header byte ", position_, ": ", what));
}

void JsonCursor::SkipSpace() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
    ++position_;
  }
}

bool JsonCursor::Consume(char wanted) {
  SkipSpace();
  if (position_ >= text_.size() || text_[position_] != wanted) return false;
  ++position_;
  return true;
}

absl::Status JsonCursor::Expect(char wanted) {
  if (Consume(wanted)) return absl::OkStatus();
  return Error(absl::StrCat("expected '", std::string(1, wanted), "'"));
}

absl::Status JsonCursor::End() {
  SkipSpace();
  if (position_ == text_.size()) return absl::OkStatus();
  return Error("text after the end of the JSON object");
}

absl::StatusOr<std::string> JsonCursor::String() {
  RETURN_IF_ERROR(Expect('"'));
  std::string result;
  while (position_ < text_.size()) {
    const char c = text_[position_++];
    if (c == '"') return result;
    if (static_cast<unsigned char>(c) < 0x20) {
      return Error("a control character in a string");
    }
    if (c == '\\') {
      RETURN_IF_ERROR(AppendEscape(&result));
    } else {
      result.push_back(c);
    }
  }
  return Error("a string without its end");
}

absl::Status JsonCursor::AppendEscape(std::string* result) {
  constexpr absl::string_view kLetters = "\"\\/bfnrt";
  constexpr absl::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (position_ >= text_.size()) return Error("a string without its end");
  const char letter = text_[position_++];
  const size_t index = kLetters.find(letter);
  if (index != absl::string_view::npos) {
    result->push_back(kMeanings[index]);
    return absl::OkStatus();
  }
  if (letter != 'u') return Error("an unknown escape");
  ASSIGN_OR_RETURN(uint32_t code, HexDigits());
  if (code >= 0xd800 && code < 0xdc00) {
    if (text_.substr(position_, 2) != "\\u") return Error("a lone surrogate");
    position_ += 2;
    ASSIGN_OR_RETURN(const uint32_t low, HexDigits());
    if (low < 0xdc00 || low >= 0xe000) return Error("a lone surrogate");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return Error("a lone surrogate");
  }
  AppendUtf8(code, result);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> JsonCursor::HexDigits() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++position_) {
    if (position_ >= text_.size() ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(text_[position_]))) {
      return Error("expected four hexadecimal digits");
    }
    const char c = absl::ascii_tolower(text_[position_]);
    value =
        value * 16 + static_cast<uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return value;
}

absl::StatusOr<int64_t> JsonCursor::Integer() {
  SkipSpace();
  const size_t start = position_;
  int64_t value = 0;
  while (position_ < text_.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(text_[position_]))) {
    const int digit = text_[position_] - '0';
    if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) {
      return Error("a number above 2^63");
    }
    value = value * 10 + digit;
    ++position_;
  }
  if (position_ == start) return Error("expected a non-negative integer");
  if (position_ - start > 1 && text_[start] == '0') {
    return Error("a number with a leading zero");
  }
  return value;
}

absl::StatusOr<std::vector<int64_t>> JsonCursor::Integers() {
  RETURN_IF_ERROR(Expect('['));
  std::vector<int64_t> values;
  if (Consume(']')) return values;
  do {
    ASSIGN_OR_RETURN(const int64_t value, Integer());
    values.push_back(value);
  } while (Consume(','));
  RETURN_IF_ERROR(Expect(']'));
  return values;
}

bool IsUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = [&](size_t k) {
      return static_cast<unsigned char>(text[i + k]);
    };
    const size_t length = SequenceLength(byte(0));
    if (length == 0 || length > text.size() - i) return false;
    if (length > 1 && !SecondByteAllowed(byte(0), byte(1))) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(k) & 0xc0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

}  // namespace muster
