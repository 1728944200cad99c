#include "ps_server/coordinator/watches.h"

#include <algorithm>
#include <iterator>

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

void Watches::CutOf(const TaskKey& asker) {
  for (Waiting& watch : waiting_) {
    if (watch.asker == asker) watch.until = absl::InfinitePast();
  }
}

std::vector<Watches::Waiting> Watches::PopAnswered(
    const StateVersions& versions, absl::Time now) {
  const auto waits = [&versions, now](const Waiting& watch) {
    const int64_t told =
        watch.watches_all ? versions.told() : versions.told_to_workers();
    // A larger version is that of a former ps task 0.
    return watch.until > now && watch.state_version >= told &&
           watch.state_version <= versions.newest();
  };
  const auto answered =
      std::stable_partition(waiting_.begin(), waiting_.end(), waits);
  std::vector<Waiting> popped(std::make_move_iterator(answered),
                              std::make_move_iterator(waiting_.end()));
  waiting_.erase(answered, waiting_.end());
  return popped;
}

absl::Time Watches::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  for (const Waiting& watch : waiting_) {
    deadline = std::min(deadline, watch.until);
  }
  return deadline;
}

}  // namespace muster
