#include "worker/task/compute_cores.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/cluster/address.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

// More than any machine has cores.
constexpr int kMostThreads = 1024;

// The host of an address of a checked cluster; "" for a task that it lacks.
std::string HostOf(const ClusterSpec& spec, const TaskId& task) {
  const auto text = spec.AddressOf(task);
  if (!text.ok()) return "";
  const auto address = ParseAddress(*text);
  return address.ok() ? address->host : "";
}

}  // namespace

absl::Status PinToCpus(const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const absl::string_view range : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
        last >= CPU_SETSIZE) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--cpus=", text, ": '", range, "' is no core and no range of cores"));
    }
    for (int cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &cpus);
  }
  if (sched_setaffinity(0, sizeof(cpus), &cpus) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--cpus=", text, ": ", absl::ErrnoToStatus(errno, "pin").message(),
      "; this process may use ", std::thread::hardware_concurrency(),
      " cores"));
}

absl::StatusOr<int> ComputeThreads(int asked, const ClusterSpec& spec,
                                   const TaskId& self) {
  if (asked < 0 || asked > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--compute_threads=", asked, ": wanted 1 to ",
                     kMostThreads, ", or 0 for the cores"));
  }
  if (asked > 0) return asked;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  const int cores = known ? CPU_COUNT(&cpus) : 1;
  const std::string own = HostOf(spec, self);
  if (own.empty()) return cores;
  std::vector<TaskId> tasks = spec.training_tasks();
  for (const auto& [index, address] : spec.tasks(kEvaluatorJob)) {
    tasks.push_back(MakeTaskId(kEvaluatorJob, index));
  }
  const auto neighbours = std::count_if(
      tasks.begin(), tasks.end(),
      [&](const TaskId& task) { return HostOf(spec, task) == own; });
  return std::max(1, cores / std::max(1, static_cast<int>(neighbours)));
}

}  // namespace muster
