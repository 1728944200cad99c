#ifndef COMMON_BASE_CORD_BYTES_H_
#define COMMON_BASE_CORD_BYTES_H_

#include <cstddef>

#include "absl/strings/cord.h"

namespace muster {

// Copies the next `size_bytes` bytes of a Cord to `dst`, out of however many
// chunks they lie in, and moves `position` behind them.
// REQUIRES: that many are left.
void CopyNext(absl::Cord::CharIterator* position, size_t size_bytes, char* dst);

// Copies `bytes` to `dst`, where some of them may lie already, each in its own
// place. Returns the first byte behind.
char* CopyCord(const absl::Cord& bytes, char* dst);

}  // namespace muster

#endif  // COMMON_BASE_CORD_BYTES_H_
