#ifndef COMMON_PROCESS_MEMORY_LIMIT_H_
#define COMMON_PROCESS_MEMORY_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The bytes of memory that this process can have before the kernel ends it: the
// least of `machine_bytes`, what the machine has, and the limits of the cgroups
// that the process is in (a container, a job of a batch system, a unit of
// systemd). Those of version 2 (memory.max) and 1 (memory.limit_in_bytes) are
// looked for in the process's own group and in all above it, below `root`,
// which ends with "/": "/" but in tests. What cannot be read limits nothing.
int64_t MemoryLimit(absl::string_view root, int64_t machine_bytes);

// The same for this process on this machine, and no more than its address
// space may grow to (ulimit -v).
int64_t OwnMemoryLimit();

// The bytes that a shard may take: nine tenths of OwnMemoryLimit. A Define
// beyond them is refused instead of ending in the hands of the kernel.
inline int64_t MaxShardBytes() { return OwnMemoryLimit() / 10 * 9; }

// The product of two numbers that are not negative; INT64_MAX if it is above.
inline int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// Errors: InvalidArgument, "WHAT wants N bytes of memory, there are M", if
// `wanted_bytes` are more than `limit_bytes`.
absl::Status CheckMemory(absl::string_view what, int64_t wanted_bytes,
                         int64_t limit_bytes);

}  // namespace muster

#endif  // COMMON_PROCESS_MEMORY_LIMIT_H_
