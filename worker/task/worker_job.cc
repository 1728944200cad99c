#include "worker/task/worker_job.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/training/replication_settings.h"
#include "worker/training/training_spec.h"

namespace muster {

absl::StatusOr<WorkerJob> WorkerJob::Create(WorkerOptions options) {
  WorkerJob job;
  job.given_training = options.training;
  const ClusterSpec& cluster = options.cluster;
  if (cluster.empty()) {
    job.chief_task = options.self;
    job.tasks = {options.self};
    job.ps_addresses = {""};
  } else {
    job.chief_task = cluster.chief();
    job.tasks = cluster.training_tasks();
    job.ps_addresses = cluster.ps_addresses();
  }
  const bool any_may_come = cluster.takes_any_worker();
  RETURN_IF_ERROR(
      FitReplication(any_may_come ? 0 : static_cast<int>(job.tasks.size()),
                     options.training.mutable_replication()));
  if (!cluster.empty()) RETURN_IF_ERROR(CheckTextSize(options.training));
  job.options = std::move(options);
  return job;
}

int WorkerJob::worker_index() const {
  const auto it = std::find(tasks.begin(), tasks.end(), options.self);
  return static_cast<int>(it - tasks.begin());
}

}  // namespace muster
