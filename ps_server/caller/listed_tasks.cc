#include "ps_server/caller/listed_tasks.h"

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"

namespace muster {

ListedTasks::ListedTasks(const ClusterDef& cluster) {
  for (const JobDef& job : cluster.job()) {
    for (const auto& [index, address] : job.tasks()) {
      indices_[job.name()].insert(index);
    }
  }
}

bool ListedTasks::Contains(const TaskKey& task) const {
  const auto job = indices_.find(task.first);
  return job != indices_.end() && job->second.count(task.second) > 0;
}

absl::Status ListedTasks::Check(absl::string_view what,
                                const TaskKey& task) const {
  const auto job = indices_.find(task.first);
  if (job == indices_.end() || job->second.count(task.second) > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": the cluster of this ps does not list ", TaskName(task),
      "; its job ", task.first, " has ", job->second.size(), " tasks, up to ",
      TaskName(TaskKey(task.first, *job->second.rbegin())),
      "; give all tasks the same cluster"));
}

bool ListedTasks::MayBeChief(const TaskKey& task) const {
  if (indices_.count(kChiefJob) > 0) {
    return task.first == kChiefJob && Contains(task);
  }
  return task.first == kChiefJob ||
         (task.first == kWorkerJob && task.second == 0);
}

}  // namespace muster
