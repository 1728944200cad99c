#ifndef COMMON_PROCESS_THREAD_SUPPLY_H_
#define COMMON_PROCESS_THREAD_SUPPLY_H_

#include "absl/status/status.h"

namespace muster {

// Can this process have so many more threads at one time? Starts them, for a
// moment: limits of processes, of a cgroup's tasks and of the address space are
// so found before libraries meet them, which end the process without a word.
// REQUIRES: wanted >= 0.
// Errors: InvalidArgument with how many there were, and why no more.
absl::Status CheckThreads(int wanted);

}  // namespace muster

#endif  // COMMON_PROCESS_THREAD_SUPPLY_H_
