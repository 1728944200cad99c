#include "common/process/cpu_quota.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/read_file.h"
#include "common/process/cgroup.h"

namespace muster {
namespace {

constexpr int64_t kMaxLimitBytes = 4096;

// "" if it cannot be read.
std::string Text(const Cgroup& group, const char* file) {
  std::string text =
      ReadFile(absl::StrCat(group.folder, "/", file), kMaxLimitBytes)
          .value_or("");
  absl::StripAsciiWhitespace(&text);
  return text;
}

// 0 for "max", "-1", and what makes no sense.
double Quotient(absl::string_view quota, absl::string_view period) {
  int64_t quota_us = 0, period_us = 0;
  if (!absl::SimpleAtoi(quota, &quota_us) || quota_us <= 0) return 0;
  if (!absl::SimpleAtoi(period, &period_us) || period_us <= 0) return 0;
  return static_cast<double>(quota_us) / static_cast<double>(period_us);
}

double QuotaOf(const Cgroup& group) {
  if (!group.is_unified) {
    return Quotient(Text(group, "cpu.cfs_quota_us"),
                    Text(group, "cpu.cfs_period_us"));
  }
  const std::vector<std::string> fields =
      absl::StrSplit(Text(group, "cpu.max"), ' ');
  return fields.size() == 2 ? Quotient(fields[0], fields[1]) : 0;
}

}  // namespace

double CpuQuota(absl::string_view root) {
  double least = 0;
  for (const Cgroup& group : CgroupsOf("cpu", root)) {
    const double quota = QuotaOf(group);
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  }
  return least;
}

}  // namespace muster
