#include "ps_server/coordinator/task_numbers.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

constexpr int32_t kLargest = static_cast<int32_t>(Members::kMaxTasks) - 1;

// In the order in which indices are given.
enum class Use { kFree, kFinished, kOfEarlier, kLost, kTaken };

Use UseOf(const CoordinatorWorker& task) {
  if (task.state == MemberState::kFinished) return Use::kFinished;
  return task.state == MemberState::kLost ? Use::kLost : Use::kTaken;
}

}  // namespace

void TaskNumbers::OnCommit(bool is_restored, absl::Time now) {
  if (known_at_ != absl::InfiniteFuture()) return;
  known_at_ = is_restored ? now + kReturn : now;
}

void TaskNumbers::HearOf(int32_t highest) {
  if (highest <= highest_) return;
  highest_ = std::min(highest, kLargest);
  highest_of_earlier_ = highest_;
}

absl::StatusOr<int32_t> TaskNumbers::Assign(uint64_t incarnation,
                                            const Members& members,
                                            absl::Time now) {
  Release(members, now);
  const absl::Status known = CheckKnown(now);
  if (!known.ok()) {
    if (waiting_.size() < kMaxWaiting) waiting_[incarnation] = now;
    return known;
  }
  waiting_.erase(incarnation);
  const int32_t own = Keep(incarnation, now);
  if (own != 0) return own;
  std::vector<Use> uses(Members::kMaxTasks, Use::kFree);
  std::fill_n(uses.begin(), highest_of_earlier_ + 1, Use::kOfEarlier);
  for (const auto& [key, worker] : members) {
    const auto index = static_cast<size_t>(key.second);
    if (key.first != kWorkerJob || index >= uses.size()) continue;
    if (worker.sender.incarnation() == incarnation) return key.second;
    uses[index] = UseOf(worker);
  }
  for (const auto& [index, kept] : kept_) uses[index] = Use::kTaken;
  const auto best = std::min_element(uses.begin() + 1, uses.end());
  if (*best == Use::kTaken) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "assign a task: workers 1 to ", kLargest,
        " of this job are all there; start this one when one has left"));
  }
  const auto index = static_cast<int32_t>(best - uses.begin());
  kept_[index] = {incarnation, now + kReserved};
  highest_ = std::max(highest_, index);
  return index;
}

int32_t TaskNumbers::Keep(uint64_t incarnation, absl::Time now) {
  for (auto& [index, kept] : kept_) {
    if (kept.incarnation != incarnation) continue;
    kept.until = now + kReserved;
    return index;
  }
  return 0;
}

std::map<TaskKey, uint64_t> TaskNumbers::Coming(const Members& members,
                                                absl::Time now) {
  Release(members, now);
  std::map<TaskKey, uint64_t> coming;
  for (const auto& [index, kept] : kept_) {
    coming[{kWorkerJob, index}] = kept.incarnation;
  }
  int32_t below_zero = 0;
  for (const auto& [incarnation, asked] : waiting_) {
    coming[{kWorkerJob, --below_zero}] = incarnation;
  }
  return coming;
}

absl::Status TaskNumbers::CheckKnown(absl::Time now) const {
  if (now >= known_at_) return absl::OkStatus();
  return absl::UnavailableError(
      known_at_ == absl::InfiniteFuture()
          ? "no worker is numbered before the chief, which is started with "
            "--task_index=0, has initialized or restored the model"
          : absl::StrCat("no worker is numbered for ",
                         absl::FormatDuration(kReturn),
                         " after the model was restored, in which those of "
                         "before come back"));
}

void TaskNumbers::Release(const Members& members, absl::Time now) {
  for (auto it = kept_.begin(); it != kept_.end();) {
    const auto& [index, kept] = *it;
    const CoordinatorWorker* const task = members.Find({kWorkerJob, index});
    const bool has_come =
        task != nullptr &&
        (task->IsThere() || task->sender.incarnation() == kept.incarnation ||
         task->IsRetired(kept.incarnation));
    it = has_come || now >= kept.until ? kept_.erase(it) : std::next(it);
  }
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    it = now >= it->second + kAskAgain ? waiting_.erase(it) : std::next(it);
  }
}

}  // namespace muster
