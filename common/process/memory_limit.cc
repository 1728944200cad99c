#include "common/process/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/read_file.h"

namespace muster {
namespace {

// The sizes of a limit's file, and of the list of a process's groups, of which
// each may have a path of PATH_MAX.
constexpr int64_t kMaxLimitBytes = 4096;
constexpr int64_t kMaxGroupsBytes = 1 << 18;

// Where a hierarchy of cgroups is mounted, and its limits' name there.
struct Hierarchy {
  const char* folder;
  const char* limit;
};
constexpr Hierarchy kVersion1 = {"sys/fs/cgroup/memory",
                                 "memory.limit_in_bytes"};
constexpr Hierarchy kVersion2 = {"sys/fs/cgroup", "memory.max"};

// The limit that a file holds; `limit` if it holds none ("max").
int64_t WithLimitOf(const std::string& file, int64_t limit) {
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxLimitBytes);
  int64_t bytes = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &bytes) || bytes < 0) return limit;
  return std::min(limit, bytes);
}

// The least limit of `group` and of those above it. A container may see itself
// at the hierarchy's root, and be told its path outside: what is not there is
// passed over.
int64_t WithLimitsOf(absl::string_view root, const Hierarchy& hierarchy,
                     absl::string_view group, int64_t limit) {
  std::string folder = absl::StrCat(root, hierarchy.folder);
  const auto look = [&] {
    limit = WithLimitOf(absl::StrCat(folder, "/", hierarchy.limit), limit);
  };
  look();
  for (const absl::string_view name :
       absl::StrSplit(group, '/', absl::SkipEmpty())) {
    // Beside what this process sees as the root: no group above it.
    if (name == "..") break;
    absl::StrAppend(&folder, "/", name);
    look();
  }
  return limit;
}

bool NamesMemory(absl::string_view controllers) {
  const std::vector<absl::string_view> names = absl::StrSplit(controllers, ',');
  return std::find(names.begin(), names.end(), "memory") != names.end();
}

}  // namespace

int64_t MemoryLimit(absl::string_view root, int64_t machine_bytes) {
  const absl::StatusOr<std::string> groups =
      ReadFile(absl::StrCat(root, "proc/self/cgroup"), kMaxGroupsBytes);
  if (!groups.ok()) return machine_bytes;
  int64_t limit = machine_bytes;
  for (const absl::string_view line : absl::StrSplit(*groups, '\n')) {
    // "0::/path" for version 2, "4:memory,cpu:/path" for version 1.
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      limit = WithLimitsOf(root, kVersion2, fields[2], limit);
    } else if (NamesMemory(fields[1])) {
      limit = WithLimitsOf(root, kVersion1, fields[2], limit);
    }
  }
  return limit;
}

int64_t OwnMemoryLimit() {
  const int64_t machine_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t limit = MemoryLimit("/", machine_bytes);
  rlimit space = {};
  // RLIM_INFINITY is larger than any limit.
  if (getrlimit(RLIMIT_AS, &space) != 0 ||
      space.rlim_cur > static_cast<rlim_t>(limit)) {
    return limit;
  }
  return static_cast<int64_t>(space.rlim_cur);
}

absl::Status CheckMemory(absl::string_view what, int64_t wanted_bytes,
                         int64_t limit_bytes) {
  if (wanted_bytes <= limit_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " wants ", wanted_bytes,
                   " bytes of memory, this process can have ", limit_bytes));
}

}  // namespace muster
