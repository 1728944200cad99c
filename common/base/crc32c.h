#ifndef COMMON_BASE_CRC32C_H_
#define COMMON_BASE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4), unmasked: of "123456789" it is
// 0xe3069283, of nothing 0. By ISA-L, which takes what the processor has for
// it.

// The CRC of some bytes, of which `crc` is the CRC of the bytes before `data`.
// ExtendCrc32c(0, data) starts.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);

inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

}  // namespace muster

#endif  // COMMON_BASE_CRC32C_H_
