#ifndef PS_SERVER_COORDINATOR_ATTENDANCE_H_
#define PS_SERVER_COORDINATOR_ATTENDANCE_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// Which of the job's workers have come, and how many gradients an update of
// synchronous training has for it; the lines about both. Not thread-safe; no
// clock.
class Attendance {
 public:
  // `listed`: the tasks that train, by the cluster; none if it does not say.
  explicit Attendance(std::vector<TaskKey> listed)
      : listed_(std::move(listed)) {}

  // An epoch begins, and counts as complete. From `assembled_at` on the
  // training goes on without those that have not come.
  void Start(const CommitEpochRequest& commit, absl::Time assembled_at);

  // The lines that are due, each once: who has not come, who has come late, and
  // the rows of an update when they change. `gradients`: of the next update; 0
  // if there can be none, or the mode has none.
  std::vector<std::string> Look(const std::set<TaskKey>& registered,
                                int64_t gradients, absl::Time now);

  // Somebody is missing, or may be from now on.
  bool IsDue(absl::Time now) const {
    return now >= assembled_at_ || !absent_.empty();
  }

  // Without workers in a mode that has no common updates.
  const UpdateSize& update() const { return update_; }
  // InfiniteFuture once it is over.
  absl::Time assembled_at() const { return assembled_at_; }
  const std::vector<TaskKey>& listed() const { return listed_; }

 private:
  std::string SayAbsent(const std::set<TaskKey>& registered);
  std::string SayUpdate(int64_t gradients);

  const std::vector<TaskKey> listed_;
  absl::Time assembled_at_ = absl::InfiniteFuture();
  // The rows of one worker's gradient.
  int64_t batch_size_ = 0;
  UpdateSize update_;
  // Those who were said not to have come.
  std::set<TaskKey> absent_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_ATTENDANCE_H_
