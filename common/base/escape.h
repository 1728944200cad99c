#ifndef COMMON_BASE_ESCAPE_H_
#define COMMON_BASE_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Returns `text` fit for one line of a log or a terminal: control characters
// and bytes that are not UTF-8 become \n, \t or \x1b forms, and what is longer
// than `max_length` bytes ends in "...". For every string that a peer or a
// file gave: an escape sequence in a task's name must not drive the
// operator's terminal, nor a newline forge a log line.
std::string EscapeForLog(absl::string_view text, size_t max_length = 500);

}  // namespace muster

#endif  // COMMON_BASE_ESCAPE_H_
