// Texts whose last line, a comment, is a CRC of all bytes above it, so that
// what was cut short or edited is not taken for what was written.
#ifndef COMMON_CHECKPOINT_CHECKED_TEXT_H_
#define COMMON_CHECKPOINT_CHECKED_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// `text`, which ends with a line's end, with that last line.
std::string WithCrcLine(absl::string_view text);

// Whether the last line is that of the text above it.
bool CrcLineFits(absl::string_view text);

}  // namespace muster

#endif  // COMMON_CHECKPOINT_CHECKED_TEXT_H_
