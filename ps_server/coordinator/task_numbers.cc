#include "ps_server/coordinator/task_numbers.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

// In the order in which indices are given.
enum class Use { kFree, kFinished, kLost, kTaken };

Use UseOf(const CoordinatorWorker& task) {
  if (task.state == MemberState::kFinished) return Use::kFinished;
  return task.state == MemberState::kLost ? Use::kLost : Use::kTaken;
}

}  // namespace

absl::StatusOr<int32_t> TaskNumbers::Assign(uint64_t incarnation,
                                            const Members& members,
                                            absl::Time now) {
  Tick(now);
  for (auto& [index, kept] : kept_) {
    if (kept.incarnation != incarnation) continue;
    kept.until = now + kReserved;
    return index;
  }
  std::vector<Use> uses(Members::kMaxTasks, Use::kFree);
  for (const auto& [key, worker] : members) {
    const auto index = static_cast<size_t>(key.second);
    if (key.first != kWorkerJob || index >= uses.size()) continue;
    if (worker.registered && worker.sender.incarnation() == incarnation) {
      return key.second;
    }
    uses[index] = UseOf(worker);
  }
  for (const auto& [index, kept] : kept_) uses[index] = Use::kTaken;
  const auto best = std::min_element(uses.begin() + 1, uses.end());
  if (*best == Use::kTaken) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "assign a task: workers 1 to ", uses.size() - 1,
        " of this job are all there; start this one when one has left"));
  }
  const auto index = static_cast<int32_t>(best - uses.begin());
  kept_[index] = {incarnation, now + kReserved};
  return index;
}

void TaskNumbers::Tick(absl::Time now) {
  for (auto it = kept_.begin(); it != kept_.end();) {
    it = now >= it->second.until ? kept_.erase(it) : std::next(it);
  }
}

absl::Time TaskNumbers::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  for (const auto& [index, kept] : kept_) {
    deadline = std::min(deadline, kept.until);
  }
  return deadline;
}

}  // namespace muster
