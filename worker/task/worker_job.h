#ifndef WORKER_TASK_WORKER_JOB_H_
#define WORKER_TASK_WORKER_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/task_id.h"
#include "proto/training.pb.h"
#include "worker/task/worker_options.h"

namespace muster {

// The job that a worker takes part in, before anything is opened.
struct WorkerJob {
  // Fits the training's replication to the cluster. Errors: those of
  // FitReplication and, in a cluster, CheckTextSize.
  static absl::StatusOr<WorkerJob> Create(WorkerOptions options);

  bool is_chief() const { return options.self == chief_task; }
  // The worker's place among the tasks.
  int worker_index() const;

  WorkerOptions options;
  // The training as it was given, before it is fitted to the cluster.
  TrainingSpec given_training;
  // The tasks of options.cluster; the chief alone where it takes any worker.
  TaskId chief_task;
  std::vector<TaskId> tasks;
  std::vector<std::string> ps_addresses;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_JOB_H_
