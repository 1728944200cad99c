#include "worker/task/compute_cores.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/escape.h"
#include "common/cluster/address.h"
#include "common/cluster/task_id.h"
#include "common/process/cpu_quota.h"

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

// At most as many as `value`, a list of OpenMP's of which the first counts.
void LimitByVariable(absl::string_view name, const std::string& value,
                     ComputeThreads* threads) {
  const std::vector<std::string> levels = absl::StrSplit(value, ',');
  int most = 0;
  if (value.empty()) return;
  if (!absl::SimpleAtoi(levels.front(), &most) || most < 1) {
    threads->warning =
        absl::StrCat(name, "=", EscapeForLog(value),
                     ": wanted a number of threads; it is taken for not set");
  } else if (most < threads->count) {
    threads->count = most;
    threads->source = absl::StrCat(name, "=", most);
  }
}

template <typename T>
const T& As(const sockaddr* address) {
  return *reinterpret_cast<const T*>(address);
}

// Ports and scopes do not count.
bool IsSame(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return As<sockaddr_in>(a).sin_addr.s_addr ==
           As<sockaddr_in>(b).sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 &&
         std::memcmp(&As<sockaddr_in6>(a).sin6_addr,
                     &As<sockaddr_in6>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

// All of 127.0.0.0/8 is there; an interface has its first alone.
bool IsLoopback(const sockaddr* address) {
  return address->sa_family == AF_INET &&
         ntohl(As<sockaddr_in>(address).sin_addr.s_addr) >> 24 ==
             IN_LOOPBACKNET;
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

absl::StatusOr<ComputeThreads> ChooseThreads(const ThreadLimits& limits) {
  if (limits.asked < 0 || limits.asked > kMostThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("--compute_threads=", limits.asked, ": wanted 1 to ",
                     kMostThreads, ", or 0 for the cores"));
  }
  if (limits.asked > 0) return ComputeThreads{limits.asked, "as asked", ""};
  if (!limits.cpus.empty()) {
    return ComputeThreads{limits.cores, absl::StrCat("--cpus=", limits.cpus),
                          ""};
  }
  ComputeThreads threads;
  const int quota =
      static_cast<int>(std::min<double>(std::ceil(limits.quota), kMostThreads));
  const bool is_limited = quota > 0 && quota < limits.cores;
  threads.source =
      is_limited
          ? absl::StrCat("cgroup quota of ", limits.quota,
                         limits.quota == 1 ? " core" : " cores")
          : absl::StrCat(limits.cores, limits.cores == 1 ? " core" : " cores");
  if (limits.tasks > 1) {
    absl::StrAppend(&threads.source, " over ", limits.tasks, " tasks");
  }
  threads.count = std::max(
      1, (is_limited ? quota : limits.cores) / std::max(1, limits.tasks));
  LimitByVariable("OMP_NUM_THREADS", limits.omp_num_threads, &threads);
  LimitByVariable("SLURM_CPUS_PER_TASK", limits.slurm_cpus_per_task, &threads);
  return threads;
}

absl::StatusOr<bool> IsOwnHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* looked_up = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &looked_up);
  if (error == EAI_AGAIN) {
    return absl::UnavailableError(
        absl::StrCat("look up ", host, ": ", gai_strerror(error)));
  }
  if (error != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(looked_up,
                                                                 &freeaddrinfo);
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) found = nullptr;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> own(found, &freeifaddrs);
  for (const addrinfo* one = looked_up; one != nullptr; one = one->ai_next) {
    if (IsLoopback(one->ai_addr)) return true;
    for (const ifaddrs* mine = found; mine != nullptr; mine = mine->ifa_next) {
      if (mine->ifa_addr != nullptr && IsSame(mine->ifa_addr, one->ai_addr)) {
        return true;
      }
    }
  }
  return false;
}

int TasksOfMachine(const ClusterSpec& spec, const TaskId& self,
                   const IsOwn& is_own) {
  std::vector<TaskId> tasks = spec.training_tasks();
  for (const auto& [index, address] : spec.tasks(kEvaluatorJob)) {
    tasks.push_back(MakeTaskId(kEvaluatorJob, index));
  }
  // What is known of hosts; its own name need not be looked up.
  std::map<std::string, bool> own = {{HostOf(spec, self), true}};
  bool answers = true;
  // The cluster may not list the evaluator.
  int count = spec.AddressOf(self).ok() ? 0 : 1;
  for (const TaskId& task : tasks) {
    const std::string host = HostOf(spec, task);
    // The chief of workers that come and go, which may be on any machine.
    if (host.empty()) continue;
    if (own.count(host) == 0 && answers) {
      const absl::StatusOr<bool> is = is_own(host);
      answers = is.ok();
      own[host] = is.value_or(false);
    }
    count += own[host] ? 1 : 0;
  }
  return count;
}

ThreadLimits LimitsHere() {
  ThreadLimits limits;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const bool known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  limits.cores = known ? CPU_COUNT(&cpus) : 1;
  limits.quota = CpuQuota("/");
  return limits;
}

}  // namespace muster
