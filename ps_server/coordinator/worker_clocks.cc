#include "ps_server/coordinator/worker_clocks.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status WorkerClocks::Check(int32_t bound) {
  if (bound >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("replication.bounded_staleness.bound is ", bound,
                   "; wanted 0 (lock-step) or more"));
}

void WorkerClocks::SetLive(const std::set<TaskKey>& live) {
  for (auto it = clocks_.begin(); it != clocks_.end();) {
    it = live.count(it->first) == 0 ? clocks_.erase(it) : std::next(it);
  }
  UpdateSlowest();
  for (const TaskKey& task : live) clocks_.try_emplace(task, slowest_);
}

void WorkerClocks::FinishStep(const TaskKey& task) {
  assert(clocks_.count(task) != 0);
  ++clocks_[task];
  UpdateSlowest();
}

void WorkerClocks::UpdateSlowest() {
  if (clocks_.empty()) return;
  slowest_ = std::min_element(clocks_.begin(), clocks_.end(),
                              [](const auto& a, const auto& b) {
                                return a.second < b.second;
                              })
                 ->second;
}

int64_t WorkerClocks::Lag(const TaskKey& task) const {
  const auto it = clocks_.find(task);
  assert(it != clocks_.end());
  return it->second - slowest_;
}

std::vector<TaskKey> WorkerClocks::Slowest() const {
  std::vector<TaskKey> slowest;
  for (const auto& [task, clock] : clocks_) {
    if (clock == slowest_) slowest.push_back(task);
  }
  return slowest;
}

}  // namespace muster
