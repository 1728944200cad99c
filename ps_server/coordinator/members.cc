#include "ps_server/coordinator/members.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"

namespace muster {
namespace {

// Larger ones are counted as this.
constexpr int64_t kMaxCountedStaleness = 64;

absl::Status NotRegistered(absl::string_view message) {
  return WithReason(absl::FailedPreconditionError(message),
                    ErrorReason::kNotRegistered);
}

}  // namespace

absl::StatusOr<CoordinatorWorker*> Members::FindSender(
    absl::string_view request, const Sender& sender) {
  const auto it = workers_.find(KeyOf(sender));
  if (it == workers_.end() || !it->second.registered) {
    return NotRegistered(absl::StrCat(
        request, " from ", TaskName(sender),
        ": it is not registered here (was ps task 0 restarted?); register"));
  }
  CoordinatorWorker& worker = it->second;
  if (worker.sender.incarnation() == sender.incarnation()) return &worker;
  const std::string start =
      absl::StrCat(request, " from ", TaskName(sender), ": incarnation ",
                   absl::Hex(sender.incarnation()));
  if (worker.IsRetired(sender.incarnation())) {
    return FencedError(
        absl::StrCat(start, " was replaced by a newer start of that task"),
        ErrorReason::kReplaced);
  }
  return NotRegistered(
      absl::StrCat(start, " is not registered here; register"));
}

const CoordinatorWorker* Members::Find(const TaskKey& key) const {
  const auto it = workers_.find(key);
  return it == workers_.end() ? nullptr : &it->second;
}

CoordinatorWorker& Members::FindOrAdd(const TaskKey& key) {
  return workers_[key];
}

std::set<TaskKey> Members::TakingSteps() const {
  std::set<TaskKey> taking;
  for (const auto& [key, worker] : workers_) {
    if (worker.TakesSteps()) taking.insert(taking.end(), key);
  }
  return taking;
}

std::set<TaskKey> Members::Active() const {
  std::set<TaskKey> active;
  for (const auto& [key, worker] : workers_) {
    if (worker.IsActive()) active.insert(active.end(), key);
  }
  return active;
}

std::set<TaskKey> Members::Registered() const {
  std::set<TaskKey> registered;
  for (const auto& [key, worker] : workers_) {
    if (worker.registered) registered.insert(registered.end(), key);
  }
  return registered;
}

bool Members::IsAnyActive() const {
  return std::any_of(begin(), end(),
                     [](const auto& entry) { return entry.second.IsActive(); });
}

bool Members::IsAnotherThere(const TaskKey& key) const {
  return std::any_of(begin(), end(), [&key](const auto& entry) {
    return entry.first != key && entry.second.IsThere();
  });
}

bool Members::DoesAnyWaitForGrant() const {
  return std::any_of(begin(), end(), [](const auto& entry) {
    return entry.second.waits_for_grant && entry.second.IsActive();
  });
}

bool Members::IsAnyWaitedFor() const {
  return std::any_of(begin(), end(), [](const auto& entry) {
    return entry.second.IsWaitedFor();
  });
}

absl::Time Members::OldestWord() const {
  absl::Time oldest = absl::InfiniteFuture();
  for (const auto& [key, worker] : workers_) {
    if (worker.IsWaitedFor()) oldest = std::min(oldest, worker.last_heard);
  }
  return oldest;
}

absl::Time Members::LastWord() const {
  absl::Time newest = absl::InfinitePast();
  for (const auto& [key, worker] : workers_) {
    newest = std::max(newest, worker.last_heard);
  }
  return newest;
}

void Members::Count(const DecidedSteps& steps, absl::Time now) {
  for (const Delivery& step : steps.chosen) {
    FindOrAdd(KeyOf(step.sender)).CountStep(step, now);
    const auto i =
        static_cast<size_t>(std::min(step.staleness, kMaxCountedStaleness));
    if (staleness_counts_.size() <= i) staleness_counts_.resize(i + 1);
    ++staleness_counts_[i];
  }
  for (const Delivery& step : steps.dropped) {
    FindOrAdd(KeyOf(step.sender)).DropStep(step, now);
  }
}

void Members::Rejoin() {
  for (auto& [key, worker] : workers_) {
    if (worker.IsThere()) worker.state = MemberState::kActive;
  }
}

void Members::Restore(const CommitEpochRequest& commit) {
  for (auto it = workers_.begin(); it != workers_.end();) {
    it = it->second.sender.incarnation() == 0 ? workers_.erase(it)
                                              : std::next(it);
  }
  staleness_counts_.clear();
  for (auto& [key, worker] : workers_) {
    worker.ResetRate();
    worker.waits_for_grant = false;
    worker.SetCounts(WorkerState());
  }
  for (const WorkerState& saved : commit.workers()) {
    CoordinatorWorker& worker = workers_[KeyOf(saved.sender())];
    if (worker.sender.incarnation() == 0) {
      worker.sender = SenderOf(KeyOf(saved.sender()), 0);
    }
    worker.SetCounts(saved);
  }
}

}  // namespace muster
