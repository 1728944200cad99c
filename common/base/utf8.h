#ifndef COMMON_BASE_UTF8_H_
#define COMMON_BASE_UTF8_H_

#include "absl/strings/string_view.h"

namespace muster {

// Whether `text` is well-formed UTF-8: no overlong form, surrogate, truncation
// or code above U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace muster

#endif  // COMMON_BASE_UTF8_H_
