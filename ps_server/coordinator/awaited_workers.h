#ifndef PS_SERVER_COORDINATOR_AWAITED_WORKERS_H_
#define PS_SERVER_COORDINATOR_AWAITED_WORKERS_H_

#include <string>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The tasks that train, in order; none if the cluster lists no such job.
std::vector<TaskKey> TrainingTasks(const ClusterDef& cluster);

// For whom a ps task waits, and to do what, as a line names it:
// "/job:worker/task:0 to initialize or restore the model". "" if the job goes
// on, or is done. `expected` are the TrainingTasks; `has_model`: of this task's
// shard.
std::string DescribeAwaitedWorkers(const std::vector<TaskKey>& expected,
                                   const JobState& state, bool has_model);

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_AWAITED_WORKERS_H_
