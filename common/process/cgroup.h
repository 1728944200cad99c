#ifndef COMMON_PROCESS_CGROUP_H_
#define COMMON_PROCESS_CGROUP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

// The folder of a cgroup that this process is in: its own, or one above it.
struct Cgroup {
  std::string folder;
  // Version 2 of the hierarchy, whose files have other names than version 1's.
  bool is_unified = false;
};

// Those in which `controller` ("memory", "cpu") may have a limit, below `root`,
// which ends with "/": "/" but in tests. A limit of any of them holds. Some may
// not be there: a container may see itself at the hierarchy's root, and be told
// its path outside. None where there are no cgroups.
std::vector<Cgroup> CgroupsOf(absl::string_view controller,
                              absl::string_view root);

}  // namespace muster

#endif  // COMMON_PROCESS_CGROUP_H_
