#ifndef PS_SERVER_COORDINATOR_WATCHES_H_
#define PS_SERVER_COORDINATOR_WATCHES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/members.h"
#include "ps_server/coordinator/state_versions.h"

namespace muster {

// The callers that wait for another version of the job's state. Not
// thread-safe; no clock.
class Watches {
 public:
  struct Waiting {
    uint64_t watch_id;
    TaskKey asker;
    // It is told of all members, not as a worker.
    bool watches_all;
    int64_t state_version;
    absl::Time until;
  };

  // One a task, and as many whose callers have asked again.
  static constexpr size_t kMost = 2 * Members::kMaxTasks;

  // Errors: ResourceExhausted if there is no room for this one.
  absl::Status CheckRoom(const WatchRequest& request) const;
  // REQUIRES: CheckRoom.
  void Add(Waiting watch) { waiting_.push_back(std::move(watch)); }
  // It waits no longer.
  void Cut(uint64_t watch_id);
  void CutOf(const TaskKey& asker);
  // Removes those that are answered now, and returns them in the order in which
  // they came.
  std::vector<Waiting> PopAnswered(const StateVersions& versions,
                                   absl::Time now);
  // The time at which the first ends; InfiniteFuture if none waits.
  absl::Time NextDeadline() const;

 private:
  std::vector<Waiting> waiting_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_WATCHES_H_
