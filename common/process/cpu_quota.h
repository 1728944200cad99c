#ifndef COMMON_PROCESS_CPU_QUOTA_H_
#define COMMON_PROCESS_CPU_QUOTA_H_

#include "absl/strings/string_view.h"

namespace muster {

// The cores' worth of time that the cgroups of this process leave it, as 2.5:
// the least of cpu.max (version 2) and of cpu.cfs_quota_us over
// cpu.cfs_period_us (version 1) of its own group and of all above it, below
// `root`, which ends with "/": "/" but in tests. 0 if there is no limit; what
// cannot be read limits nothing.
double CpuQuota(absl::string_view root);

}  // namespace muster

#endif  // COMMON_PROCESS_CPU_QUOTA_H_
