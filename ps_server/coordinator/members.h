#ifndef PS_SERVER_COORDINATOR_MEMBERS_H_
#define PS_SERVER_COORDINATOR_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/coordinator_worker.h"
#include "ps_server/coordinator/step_rounds.h"

namespace muster {

// The tasks that ps task 0 knows: those that have registered, and those of the
// manifest that have not come yet. Not thread-safe; no clock.
class Members {
 public:
  // More than any cluster has tasks (a cluster file's own limit).
  static constexpr size_t kMaxTasks = 4096;

  using Map = std::map<TaskKey, CoordinatorWorker>;

  // Errors: FailedPrecondition with "fenced: " if the sender's incarnation was
  // replaced, without it if it is not registered.
  absl::StatusOr<CoordinatorWorker*> FindSender(absl::string_view request,
                                                const Sender& sender);
  // Null if nobody knows the task.
  const CoordinatorWorker* Find(const TaskKey& key) const;
  // The task's record, which may be a new one.
  CoordinatorWorker& FindOrAdd(const TaskKey& key);

  size_t size() const { return workers_.size(); }
  // The tasks that take part in the training now.
  std::set<TaskKey> Active() const;
  // Those of them that take steps.
  std::set<TaskKey> TakingSteps() const;
  std::set<TaskKey> Registered() const;
  bool IsAnyActive() const;
  bool IsAnotherThere(const TaskKey& key) const;
  // Has an active one been told to wait for a grant?
  bool DoesAnyWaitForGrant() const;
  bool IsAnyWaitedFor() const;
  // The oldest word of those who are waited for; InfiniteFuture if nobody is.
  absl::Time OldestWord() const;
  // The newest of anybody; InfinitePast if nobody has come.
  absl::Time LastWord() const;

  // Counts steps for their workers, which are known.
  void Count(const DecidedSteps& steps, absl::Time now);
  // The counted steps by their staleness, as JobState.staleness_counts.
  const std::vector<int64_t>& staleness_counts() const {
    return staleness_counts_;
  }

  // Who stayed takes part again.
  void Rejoin();
  // Begins an epoch: all counts are those of the commit, whose numbers have
  // been checked. A task that an earlier manifest alone knew is forgotten.
  void Restore(const CommitEpochRequest& commit);

  Map::iterator begin() { return workers_.begin(); }
  Map::iterator end() { return workers_.end(); }
  Map::const_iterator begin() const { return workers_.begin(); }
  Map::const_iterator end() const { return workers_.end(); }

 private:
  Map workers_;
  std::vector<int64_t> staleness_counts_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_MEMBERS_H_
