#ifndef COMMON_CONFIG_JSON_H_
#define COMMON_CONFIG_JSON_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// A JSON value (RFC 8259) that remembers where it stood. Members of an object
// keep their order.
struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  // A number as it is written, or a string's value.
  std::string text;
  std::vector<JsonValue> items;
  std::vector<std::pair<std::string, JsonValue>> members;
  // The place of the value's first character, from 1.
  int line = 1;
  int column = 1;

  // The member of that name, or nullptr.
  const JsonValue* Find(absl::string_view name) const;
};

// "object", "string", ...
absl::string_view JsonKindName(JsonValue::Kind kind);

// Parses one JSON value that is the whole of `text`. Strict: a repeated key,
// a comment or a trailing comma is an error. protobuf's own JSON parser keeps
// neither repeated keys nor lines, hence this one.
// Errors: InvalidArgument, "line:column: ..."; also for values nested more than
// 32 deep and texts of more than `max_bytes`.
absl::StatusOr<JsonValue> ParseJson(absl::string_view text,
                                    size_t max_bytes = 1 << 20);

}  // namespace muster

#endif  // COMMON_CONFIG_JSON_H_
