#include "common/config/json.h"

#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Enough for any configuration, little for the stack.
constexpr int kMaxDepth = 32;

void AppendUtf8(uint32_t code, std::string* out) {
  const auto tail = [code](int shift) {
    return static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->append({static_cast<char>(0xc0 | (code >> 6)), tail(0)});
  } else if (code < 0x10000) {
    out->append({static_cast<char>(0xe0 | (code >> 12)), tail(6), tail(0)});
  } else {
    out->append(
        {static_cast<char>(0xf0 | (code >> 18)), tail(12), tail(6), tail(0)});
  }
}

// Recursive descent over one text.
class JsonParser {
 public:
  explicit JsonParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<JsonValue> ParseDocument() {
    ASSIGN_OR_RETURN(JsonValue value, ParseValue(/*depth=*/1));
    SkipSpace();
    if (!AtEnd()) return Error("the end of the text");
    return value;
  }

 private:
  bool AtEnd() const { return position_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }

  void Next() {
    if (text_[position_++] == '\n') {
      ++line_;
      line_start_ = position_;
    }
  }

  void SkipSpace() {
    while (!AtEnd() && absl::StrContains(" \t\r\n", Peek())) Next();
  }

  bool Consume(char c) {
    SkipSpace();
    if (AtEnd() || Peek() != c) return false;
    Next();
    return true;
  }

  absl::Status ErrorText(absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(line_, ":", position_ - line_start_ + 1, ": ", message));
  }

  absl::Status Error(absl::string_view wanted) const {
    return ErrorText(absl::StrCat(
        "wanted ", wanted, ", found ",
        AtEnd() ? "the end of the text"
                : absl::StrCat("'", EscapeForLog(text_.substr(position_, 1)),
                               "'")));
  }

  absl::StatusOr<JsonValue> ParseValue(int depth) {
    SkipSpace();
    if (depth > kMaxDepth) {
      return ErrorText(absl::StrCat("nested deeper than ", kMaxDepth));
    }
    JsonValue value;
    value.line = line_;
    value.column = static_cast<int>(position_ - line_start_ + 1);
    RETURN_IF_ERROR(ParseInto(depth, &value));
    return value;
  }

  absl::Status ParseInto(int depth, JsonValue* value) {
    switch (Peek()) {
      case '{':
        return ParseObject(depth, value);
      case '[':
        return ParseArray(depth, value);
      case '"':
        value->kind = JsonValue::Kind::kString;
        return ParseString(&value->text);
      default:
        return ParseScalar(value);
    }
  }

  absl::Status ParseObject(int depth, JsonValue* value) {
    value->kind = JsonValue::Kind::kObject;
    Next();
    if (Consume('}')) return absl::OkStatus();
    absl::flat_hash_set<std::string> keys;
    do {
      RETURN_IF_ERROR(ParseMember(depth, &keys, value));
    } while (Consume(','));
    return Consume('}') ? absl::OkStatus() : Error("',' or '}'");
  }

  absl::Status ParseMember(int depth, absl::flat_hash_set<std::string>* keys,
                           JsonValue* object) {
    SkipSpace();
    if (Peek() != '"') return Error("a key in double quotes");
    const JsonParser before = *this;
    std::string key;
    RETURN_IF_ERROR(ParseString(&key));
    if (!keys->insert(key).second) {
      return before.ErrorText(
          absl::StrCat("the key '", EscapeForLog(key), "' is given twice"));
    }
    if (!Consume(':')) return Error("':'");
    ASSIGN_OR_RETURN(JsonValue member, ParseValue(depth + 1));
    object->members.emplace_back(std::move(key), std::move(member));
    return absl::OkStatus();
  }

  absl::Status ParseArray(int depth, JsonValue* value) {
    value->kind = JsonValue::Kind::kArray;
    Next();
    if (Consume(']')) return absl::OkStatus();
    do {
      ASSIGN_OR_RETURN(JsonValue item, ParseValue(depth + 1));
      value->items.push_back(std::move(item));
    } while (Consume(','));
    return Consume(']') ? absl::OkStatus() : Error("',' or ']'");
  }

  absl::Status ParseString(std::string* out) {
    Next();
    while (!AtEnd() && Peek() != '"') {
      if (static_cast<unsigned char>(Peek()) < 0x20) {
        return ErrorText("a control character in a string");
      }
      if (Peek() == '\\') {
        RETURN_IF_ERROR(ParseEscape(out));
      } else {
        out->push_back(Peek());
        Next();
      }
    }
    if (AtEnd()) return Error("'\"'");
    Next();
    return absl::OkStatus();
  }

  absl::Status ParseEscape(std::string* out) {
    constexpr absl::string_view kNames = "\"\\/bfnrt";
    constexpr absl::string_view kValues = "\"\\/\b\f\n\r\t";
    Next();
    const size_t simple =
        AtEnd() ? absl::string_view::npos : kNames.find(Peek());
    if (simple != absl::string_view::npos) {
      out->push_back(kValues[simple]);
      Next();
      return absl::OkStatus();
    }
    uint32_t code = 0;
    RETURN_IF_ERROR(ParseUnicode(&code));
    if (code >= 0xd800 && code < 0xdc00) {
      uint32_t low = 0;
      if (Peek() != '\\') return ErrorText("half a surrogate");
      Next();
      RETURN_IF_ERROR(ParseUnicode(&low));
      if (low < 0xdc00 || low > 0xdfff) return ErrorText("half a surrogate");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
      return ErrorText("half a surrogate");
    }
    AppendUtf8(code, out);
    return absl::OkStatus();
  }

  // The "u12ab" of an escape.
  absl::Status ParseUnicode(uint32_t* code) {
    if (Peek() != 'u') return Error("an escape sequence");
    Next();
    const absl::string_view digits = text_.substr(position_, 4);
    if (digits.size() != 4 || !absl::SimpleHexAtoi(digits, code) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]))) {
      return Error("four hexadecimal digits");
    }
    position_ += 4;
    return absl::OkStatus();
  }

  // null, true, false or a number.
  absl::Status ParseScalar(JsonValue* value) {
    size_t end = position_;
    while (end < text_.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(text_[end])) ||
            absl::StrContains("+-.", text_[end]))) {
      ++end;
    }
    const absl::string_view word = text_.substr(position_, end - position_);
    const absl::string_view digits = absl::StripPrefix(word, "-");
    const bool has_leading_zero =
        digits.size() > 1 && digits[0] == '0' &&
        absl::ascii_isdigit(static_cast<unsigned char>(digits[1]));
    double number = 0;
    if (word == "null") {
      value->kind = JsonValue::Kind::kNull;
    } else if (word == "true" || word == "false") {
      value->kind = JsonValue::Kind::kBool;
      value->boolean = word == "true";
    } else if (!word.empty() &&
               (absl::ascii_isdigit(static_cast<unsigned char>(word[0])) ||
                word[0] == '-') &&
               absl::ascii_isdigit(static_cast<unsigned char>(word.back())) &&
               !absl::StrContains(word, 'x') && !has_leading_zero &&
               absl::SimpleAtod(word, &number)) {
      value->kind = JsonValue::Kind::kNumber;
      value->text = std::string(word);
    } else {
      return Error("a JSON value");
    }
    position_ = end;
    return absl::OkStatus();
  }

  absl::string_view text_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

const JsonValue* JsonValue::Find(absl::string_view name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

absl::string_view JsonKindName(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return "bool";
    case JsonValue::Kind::kNumber:
      return "number";
    case JsonValue::Kind::kString:
      return "string";
    case JsonValue::Kind::kArray:
      return "list";
    case JsonValue::Kind::kObject:
      return "object";
  }
  return "unknown";
}

absl::StatusOr<JsonValue> ParseJson(absl::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the JSON text has ", text.size(), " bytes, at most ",
                     max_bytes, " are read"));
  }
  return JsonParser(text).ParseDocument();
}

}  // namespace muster
