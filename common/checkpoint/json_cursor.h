#ifndef COMMON_CHECKPOINT_JSON_CURSOR_H_
#define COMMON_CHECKPOINT_JSON_CURSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Reads the JSON (RFC 8259) that a safetensors header consists of: objects,
// strings and lists of non-negative integers. There is no recursion, so no
// input exhausts the stack. Errors are DataLoss with the byte offset. The text
// must outlive the cursor.
class JsonCursor {
 public:
  explicit JsonCursor(absl::string_view text) : text_(text) {}

  // Skips white space, then wants exactly this character.
  absl::Status Expect(char wanted);
  // Skips white space; is this character next? If so, takes it.
  bool Consume(char wanted);
  // A string, its escapes decoded.
  absl::StatusOr<std::string> String();
  // "[1, 2, 3]".
  absl::StatusOr<std::vector<int64_t>> Integers();
  // Only white space may be left.
  absl::Status End();

  absl::Status Error(absl::string_view what) const;

 private:
  void SkipSpace();
  absl::StatusOr<int64_t> Integer();
  absl::Status AppendEscape(std::string* result);
  absl::StatusOr<uint32_t> HexDigits();

  absl::string_view text_;
  size_t position_ = 0;
};

// Is `text` well-formed UTF-8 (no overlong form, surrogate or truncation)?
bool IsUtf8(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_JSON_CURSOR_H_
