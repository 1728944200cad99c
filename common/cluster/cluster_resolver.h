#ifndef COMMON_CLUSTER_CLUSTER_RESOLVER_H_
#define COMMON_CLUSTER_CLUSTER_RESOLVER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "proto/cluster.pb.h"

namespace muster {

// Everything that may say which cluster this process is in, and who it is.
struct ClusterOptions {
  // --cluster: path of a JSON or text file; "" if not given.
  std::string cluster_file;
  // --ps_hosts, --worker_hosts: comma-separated addresses; "" if not given.
  std::string ps_hosts;
  std::string worker_hosts;
  // --job_name, --task_index; "" if not given. The index may be kAnyTask: of a
  // worker that has no number yet.
  std::string job_name;
  std::string task_index;
  // --standalone: one process without ports.
  bool standalone = false;
  // The environment variable TF_CONFIG; "" if not set.
  std::string tf_config;
  // LauncherOfSeveral(environment).
  std::string launcher;

  // Given by the binary: the jobs that it can run, {"ps"} or {"worker",
  // "chief"}. The first is the default.
  std::vector<std::string> jobs;
  // Given by the binary: may it run without a cluster?
  bool can_be_standalone = false;
  // Given by the binary: does it know what to do in a cluster without ps tasks,
  // whose workers hold the parameters (ClusterSpec::ForAllReduce)?
  bool can_all_reduce = false;
};

struct ResolvedCluster {
  // Empty in standalone mode.
  ClusterSpec spec;
  // Index -1: a worker that has no number yet (--task_index=any).
  TaskId task;
  // Where the spec came from, for the log: "--cluster=c.json".
  std::string source;
};

// The variable by which a launcher (srun, mpirun, torchrun, an indexed Job of
// Kubernetes) says that this process is one of several: "WORLD_SIZE=4"; "" if
// none does. `environment` gives a variable's value, "" for one that is not
// set.
std::string LauncherOfSeveral(
    absl::FunctionRef<std::string(const char*)> environment);

// Finds the cluster and the own task. Sources, the first that says something
// decides: flags, the file, TF_CONFIG, standalone. The own job and index
// default to the binary's and 0; the index does not where TF_CONFIG decides and
// the job has several tasks, nor that of a worker where any may come. Reads the
// file.
// Errors: InvalidArgument for a malformed source (naming the place), two
// sources that contradict each other (naming both and the first difference),
// an unknown job, a cluster without ps tasks where that cannot be, one that
// lists localhost or 0.0.0.0 beside other hosts, a TF_CONFIG that has something
// but no cluster where no other source has one, one of a launcher's processes
// with neither a cluster nor --standalone, an own task that the cluster lacks,
// and one of no number in a cluster that lists its workers; and those of
// ReadFile. An evaluator may be missing: TensorFlow's
// TF_CONFIG never lists it, because no other task talks to it.
absl::StatusOr<ResolvedCluster> ResolveCluster(const ClusterOptions& options);

}  // namespace muster

#endif  // COMMON_CLUSTER_CLUSTER_RESOLVER_H_
