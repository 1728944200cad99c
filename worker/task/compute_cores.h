#ifndef WORKER_TASK_COMPUTE_CORES_H_
#define WORKER_TASK_COMPUTE_CORES_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "proto/cluster.pb.h"

namespace muster {

// Pins this process, and what it starts, to cores like "0-3,6"; "" does
// nothing. Errors: InvalidArgument for what is no core, or is not ours.
absl::Status PinToCpus(const std::string& text);

// What decides how many threads a task computes with.
struct ThreadLimits {
  // --compute_threads and --cpus, which stand over all others; 0 and "": not
  // given.
  int asked = 0;
  std::string cpus;
  // The cores that the process may run on, and the cores' worth of time that
  // its cgroups leave it (CpuQuota; 0: all). They are of `tasks` tasks
  // together.
  int cores = 1;
  double quota = 0;
  int tasks = 1;
  // Of the environment, and of one task; "": not set.
  std::string omp_num_threads;
  std::string slurm_cpus_per_task;
};

struct ComputeThreads {
  int count = 1;
  // "cgroup quota of 4 cores over 2 tasks".
  std::string source;
  // A line about a variable that makes no sense, which limits nothing; else "".
  std::string warning;
};

// The cores, or the quota (its fraction counts as a core, as for the JVM and
// Go), over the tasks; then at most OMP_NUM_THREADS, of whose list the first
// counts, and SLURM_CPUS_PER_TASK. Errors: InvalidArgument if `asked` is
// negative, or more than any machine has.
absl::StatusOr<ComputeThreads> ChooseThreads(const ThreadLimits& limits);

// Whether a host of the cluster means this machine; Unavailable: cannot be told
// now, and is not asked for others either.
using IsOwn = std::function<absl::StatusOr<bool>(const std::string& host)>;

// Does `host`, a name or an IP address, stand for an address of one of this
// machine's interfaces (in a container: of the container's)? A name is looked
// up; one that stands for nothing is not this machine's.
// Errors: Unavailable if whoever knows names does not answer now.
absl::StatusOr<bool> IsOwnHost(const std::string& host);

// How many workers, chief and evaluator of the cluster compute on the machine
// of `self`, by the addresses of its interfaces: 1 at least.
int TasksOfMachine(const ClusterSpec& spec, const TaskId& self,
                   const IsOwn& is_own);

// `cores` and `quota` of this process.
ThreadLimits LimitsHere();

}  // namespace muster

#endif  // WORKER_TASK_COMPUTE_CORES_H_
