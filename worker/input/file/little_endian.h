#ifndef WORKER_INPUT_FILE_LITTLE_ENDIAN_H_
#define WORKER_INPUT_FILE_LITTLE_ENDIAN_H_

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// The unsigned number in the `size` bytes from `offset` on, the lowest first.
// REQUIRES: size <= 8, and the bytes are there.
inline uint64_t LittleEndianAt(absl::Span<const uint8_t> bytes, size_t offset,
                               size_t size) {
  assert(size <= 8 && offset + size <= bytes.size());
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | bytes[offset + i];
  return value;
}

}  // namespace muster

#endif  // WORKER_INPUT_FILE_LITTLE_ENDIAN_H_
