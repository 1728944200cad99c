#ifndef PS_SERVER_COORDINATOR_WATCHES_H_
#define PS_SERVER_COORDINATOR_WATCHES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/members.h"

namespace muster {

// The callers that wait for another version of the job's state. Not
// thread-safe; no clock.
class Watches {
 public:
  // One a task, and as many whose callers have asked again.
  static constexpr size_t kMost = 2 * Members::kMaxTasks;

  // Errors: ResourceExhausted if there is no room for this one.
  absl::Status CheckRoom(const WatchRequest& request) const;
  // REQUIRES: CheckRoom.
  void Add(uint64_t watch_id, int64_t state_version, absl::Time until) {
    waiting_.push_back({watch_id, state_version, until});
  }
  // It waits no longer.
  void Cut(uint64_t watch_id);
  // Removes those that are answered now, and returns their ids in the order in
  // which they came.
  std::vector<uint64_t> PopAnswered(int64_t state_version, absl::Time now);
  // The time at which the first ends; InfiniteFuture if none waits.
  absl::Time NextDeadline() const;

 private:
  struct Waiting {
    uint64_t watch_id;
    int64_t state_version;
    absl::Time until;
  };

  std::vector<Waiting> waiting_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_WATCHES_H_
