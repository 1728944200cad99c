#ifndef COMMON_BASE_UTF8_H_
#define COMMON_BASE_UTF8_H_

#include <string>

#include "absl/strings/string_view.h"

namespace muster {

// Whether `text` is well-formed UTF-8: no overlong form, surrogate, truncation
// or code above U+10FFFF.
bool IsUtf8(absl::string_view text);

// Any bytes, such as a file's name in Latin-1, as well-formed UTF-8, which the
// string of a proto message must be: "caf\xE9" of those that are none, and
// "\\" of "\". Different bytes give different texts.
std::string Utf8OfBytes(absl::string_view bytes);

// The bytes that Utf8OfBytes made `text` of. Of what it cannot have made, that
// stays as it is.
std::string BytesOfUtf8(absl::string_view text);

}  // namespace muster

#endif  // COMMON_BASE_UTF8_H_
