#include "ps_server/coordinator/watches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"

namespace muster {

absl::Status Watches::CheckRoom(const WatchRequest& request) const {
  if (waiting_.size() < kMost) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("watch from ", TaskName(request.sender()), ": ", kMost,
                   " callers wait already; ask again later"));
}

void Watches::Cut(uint64_t watch_id) {
  for (Waiting& watch : waiting_) {
    if (watch.watch_id == watch_id) watch.until = absl::InfinitePast();
  }
}

std::vector<uint64_t> Watches::PopAnswered(int64_t state_version,
                                           absl::Time now) {
  const auto ends = [state_version, now](const Waiting& watch) {
    return watch.state_version != state_version || watch.until <= now;
  };
  std::vector<uint64_t> answered;
  for (const Waiting& watch : waiting_) {
    if (ends(watch)) answered.push_back(watch.watch_id);
  }
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), ends),
                 waiting_.end());
  return answered;
}

absl::Time Watches::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  for (const Waiting& watch : waiting_) {
    deadline = std::min(deadline, watch.until);
  }
  return deadline;
}

}  // namespace muster
