#ifndef COMMON_CLUSTER_CLUSTER_SPEC_H_
#define COMMON_CLUSTER_CLUSTER_SPEC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"

namespace muster {

// The tasks that train together and their addresses. A checked value:
//   - jobs are ps, worker, chief (at most one task), evaluator (at most one);
//   - ps tasks are numbered 0, 1, ... without gaps: task 0 coordinates, and
//     placement counts on the others. Other jobs may have gaps (Kubeflow gives
//     each worker only its own entry);
//   - addresses parse and no two tasks have the same (but for ForAllReduce);
//   - at most kMaxTasks tasks.
// Beside ps tasks job worker may list none: then whoever comes is a worker.
// An empty spec stands for a single process without ports.
// Immutable, so thread-safe.
class ClusterSpec {
 public:
  static constexpr int kMaxTasks = 4096;
  using Tasks = std::map<int32_t, std::string>;

  ClusterSpec() = default;

  // Checks `def`. Jobs named "master" or "coordinator" become the chief.
  // Errors: InvalidArgument naming the job, the task and the address.
  static absl::StatusOr<ClusterSpec> Create(const ClusterDef& def);

  // The same cluster, which has no ps task, for all-reduce: ps i is in the
  // process of the i'th training task, and has its address. Errors:
  // InvalidArgument if there is no training task, or one has no number that the
  // others could count on.
  absl::StatusOr<ClusterSpec> ForAllReduce() const;
  // Made by ForAllReduce.
  bool is_all_reduce() const { return is_all_reduce_; }
  // Workers come and go: there are ps tasks, and no worker is listed.
  bool takes_any_worker() const {
    return !is_all_reduce_ && num_ps() > 0 && tasks("worker").empty();
  }
  // In all-reduce, the ps task in the process of this one, if it trains.
  std::optional<int32_t> ShardOf(const TaskId& task) const;

  bool empty() const { return jobs_.empty(); }
  int num_tasks() const;
  int num_ps() const { return static_cast<int>(tasks("ps").size()); }

  // Task index to address; empty if the cluster has no such job.
  const Tasks& tasks(absl::string_view job) const;

  // Addresses of the ps tasks by index.
  std::vector<std::string> ps_addresses() const;

  // The task's address, or InvalidArgument that lists the job's tasks.
  absl::StatusOr<std::string> AddressOf(const TaskId& task) const;

  // Who initializes, saves and recovers: job chief, else worker 0. Worker 0
  // need not be in a worker's partial spec.
  TaskId chief() const;

  // Tasks that take steps: the chief, then the workers by index; the chief
  // alone where the workers are whoever comes.
  std::vector<TaskId> training_tasks() const;

  // The jobs but the evaluator, as a ps task is told of them.
  ClusterDef TrainingDef() const;

  // "ps 2, worker 3" or "ps 2, any worker" for the first line of a log;
  // "standalone" if empty.
  std::string Summary() const;

  // "" if both are equal, else the first difference in words, for example
  // "/job:worker/task:1 is h1:2222 in one and h2:2222 in the other".
  static std::string Difference(const ClusterSpec& a, absl::string_view a_name,
                                const ClusterSpec& b, absl::string_view b_name);

  friend bool operator==(const ClusterSpec& a, const ClusterSpec& b) {
    return a.jobs_ == b.jobs_;
  }
  friend bool operator!=(const ClusterSpec& a, const ClusterSpec& b) {
    return !(a == b);
  }

 private:
  std::map<std::string, Tasks, std::less<>> jobs_;
  bool is_all_reduce_ = false;
};

}  // namespace muster

#endif  // COMMON_CLUSTER_CLUSTER_SPEC_H_
