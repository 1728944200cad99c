#include "common/process/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/process/cgroup.h"

namespace muster {
namespace {

// The size of a limit's file.
constexpr int64_t kMaxLimitBytes = 4096;

// The limit that a file holds; `limit` if it holds none ("max").
int64_t WithLimitOf(const std::string& file, int64_t limit) {
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxLimitBytes);
  int64_t bytes = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &bytes) || bytes < 0) return limit;
  return std::min(limit, bytes);
}

}  // namespace

int64_t MemoryLimit(absl::string_view root, int64_t machine_bytes) {
  int64_t limit = machine_bytes;
  for (const Cgroup& group : CgroupsOf("memory", root)) {
    limit = WithLimitOf(
        absl::StrCat(group.folder, group.is_unified ? "/memory.max"
                                                    : "/memory.limit_in_bytes"),
        limit);
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
