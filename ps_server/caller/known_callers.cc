#include "ps_server/caller/known_callers.h"

#include <string>

#include "common/cluster/task_id.h"

namespace muster {
namespace {

Role RoleOf(const Identity& identity, const ListedTasks& listed) {
  if (identity.job == kViewerIdentity) return Role::kViewer;
  if (identity.job == kAdminIdentity) return Role::kAdmin;
  if (identity.job == kPsJob) return Role::kPs;
  if (identity.job == kEvaluatorJob) return Role::kEvaluator;
  if (!IsTrainingJob(identity.job)) return Role::kStranger;
  return listed.MayBeChief({identity.job, identity.index}) ? Role::kChief
                                                           : Role::kWorker;
}

// In all-reduce: ps tasks by the training task in whose process they are, which
// has the same address.
std::map<TaskKey, TaskKey> ShardsOf(const ClusterDef& cluster) {
  std::map<std::string, TaskKey> ps;
  for (const JobDef& job : cluster.job()) {
    if (job.name() != kPsJob) continue;
    for (const auto& [index, address] : job.tasks()) {
      ps.emplace(address, TaskKey(kPsJob, index));
    }
  }
  std::map<TaskKey, TaskKey> shards;
  for (const JobDef& job : cluster.job()) {
    if (!IsTrainingJob(job.name())) continue;
    for (const auto& [index, address] : job.tasks()) {
      const auto own = ps.find(address);
      if (own == ps.end()) continue;
      shards.emplace(TaskKey(job.name(), index), own->second);
    }
  }
  return shards;
}

}  // namespace

KnownCallers::KnownCallers(const ClusterDef& cluster)
    : listed_(cluster), shards_(ShardsOf(cluster)) {}

TaskKey ProcessOfPs(const ClusterDef& cluster, int32_t ps_index) {
  const TaskKey ps(kPsJob, ps_index);
  for (const auto& [task, shard] : ShardsOf(cluster)) {
    if (shard == ps) return task;
  }
  return ps;
}

Caller KnownCallers::CallerOf(const Identity& identity) const {
  Caller caller;
  caller.role = RoleOf(identity, listed_);
  if (!identity.is_task()) return caller;
  caller.task = TaskKey(identity.job, identity.index);
  const auto shard = shards_.find(*caller.task);
  if (shard != shards_.end()) caller.ps = shard->second;
  return caller;
}

std::string AddressOfPs(const ClusterDef& cluster, int32_t ps_index) {
  for (const JobDef& job : cluster.job()) {
    const auto task = job.tasks().find(ps_index);
    if (job.name() == kPsJob && task != job.tasks().end()) return task->second;
  }
  return "";
}

}  // namespace muster
