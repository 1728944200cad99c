#ifndef COMMON_BASE_FINGERPRINT_H_
#define COMMON_BASE_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/): the same on every
// machine and in every version, unlike absl::Hash. For telling configurations
// apart, not for security.
uint64_t Fingerprint64(absl::string_view text);

}  // namespace muster

#endif  // COMMON_BASE_FINGERPRINT_H_
