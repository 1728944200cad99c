#ifndef COMMON_BASE_MEMORY_LIMIT_H_
#define COMMON_BASE_MEMORY_LIMIT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// The bytes of memory that this process can have before the kernel ends it: the
// least of `machine_bytes`, what the machine has, and the limits of the cgroups
// that the process is in (a container, a job of a batch system, a unit of
// systemd). Those of version 2 (memory.max) and 1 (memory.limit_in_bytes) are
// looked for in the process's own group and in all above it, below `root`,
// which ends with "/": "/" but in tests. What cannot be read limits nothing.
int64_t MemoryLimit(absl::string_view root, int64_t machine_bytes);

}  // namespace muster

#endif  // COMMON_BASE_MEMORY_LIMIT_H_
