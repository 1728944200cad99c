#ifndef PS_SERVER_CALLER_LISTED_TASKS_H_
#define PS_SERVER_CALLER_LISTED_TASKS_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The tasks that a ps knows from its cluster, which may list only some jobs: a
// task of a job that is not listed at all is believed. Constant.
class ListedTasks {
 public:
  explicit ListedTasks(const ClusterDef& cluster = {});

  bool Contains(const TaskKey& task) const;

  // Errors: InvalidArgument, beginning with `what`, if its job is listed
  // without this task.
  absl::Status Check(absl::string_view what, const TaskKey& task) const;

  // The chief is the task of job chief, else worker 0.
  bool MayBeChief(const TaskKey& task) const;

 private:
  // By job.
  std::map<std::string, std::set<int32_t>> indices_;
};

}  // namespace muster

#endif  // PS_SERVER_CALLER_LISTED_TASKS_H_
