#include "common/process/cgroup.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/read_file.h"

namespace muster {
namespace {

// The size of the list of a process's groups, of which each may have a path of
// PATH_MAX.
constexpr int64_t kMaxGroupsBytes = 1 << 18;

void Append(std::string folder, absl::string_view group, bool is_unified,
            std::vector<Cgroup>* groups) {
  groups->push_back({folder, is_unified});
  for (const absl::string_view name :
       absl::StrSplit(group, '/', absl::SkipEmpty())) {
    // Beside what this process sees as the root: no group above it.
    if (name == "..") break;
    absl::StrAppend(&folder, "/", name);
    groups->push_back({folder, is_unified});
  }
}

bool Names(absl::string_view controllers, absl::string_view controller) {
  const std::vector<absl::string_view> names = absl::StrSplit(controllers, ',');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

}  // namespace

std::vector<Cgroup> CgroupsOf(absl::string_view controller,
                              absl::string_view root) {
  std::vector<Cgroup> groups;
  const absl::StatusOr<std::string> lines =
      ReadFile(absl::StrCat(root, "proc/self/cgroup"), kMaxGroupsBytes);
  if (!lines.ok()) return groups;
  const std::string mounts = absl::StrCat(root, "sys/fs/cgroup");
  for (const absl::string_view line : absl::StrSplit(*lines, '\n')) {
    // "0::/path" for version 2, "4:cpu,cpuacct:/path" for version 1, which is
    // mounted by all these names or by one.
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      Append(mounts, fields[2], /*is_unified=*/true, &groups);
    } else if (Names(fields[1], controller)) {
      Append(absl::StrCat(mounts, "/", controller), fields[2],
             /*is_unified=*/false, &groups);
      Append(absl::StrCat(mounts, "/", fields[1]), fields[2],
             /*is_unified=*/false, &groups);
    }
  }
  return groups;
}

}  // namespace muster
