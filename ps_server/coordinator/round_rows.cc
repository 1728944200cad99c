#include "ps_server/coordinator/round_rows.h"

#include <algorithm>
#include <cstddef>

namespace muster {

bool RoundRows::DealFirsts(const std::set<TaskKey>& workers, int64_t needed) {
  leases_.LeaveUnless(
      [&workers](const TaskKey& task) { return workers.count(task) != 0; });
  int64_t wanted = 0;
  for (const TaskKey& task : workers) {
    if (leases_.NumLeases(task) == 0) wanted += leases_.WishOf(task).step_rows;
  }
  if (wanted > leases_.NumLeft()) leases_.Recall();
  int64_t able = 0;
  for (const TaskKey& task : workers) {
    if (leases_.TryDealFirst(task)) ++able;
  }
  const int64_t unnamed = needed - static_cast<int64_t>(workers.size());
  if (unnamed > 0 &&
      unnamed * leases_.WishOf({}).step_rows <= leases_.NumLeft()) {
    able += unnamed;
  }
  return able >= needed;
}

void RoundRows::DealAhead(const std::set<TaskKey>& workers, int64_t rounds) {
  int64_t most = 0;
  for (const TaskKey& task : workers) {
    most = std::max<int64_t>(most, leases_.WishOf(task).ahead);
  }
  most = std::min(most, rounds);
  for (int64_t level = 1; level <= most; ++level) {
    for (const TaskKey& task : workers) {
      if (leases_.WishOf(task).ahead < level ||
          leases_.NumLeases(task) > static_cast<size_t>(level)) {
        continue;
      }
      if (!leases_.TryDealAhead(task)) return;
    }
  }
}

bool RoundRows::TryDealTo(const TaskKey& task) {
  if (leases_.TryDealFirst(task)) return true;
  leases_.RecallAhead();
  return leases_.TryDealFirst(task);
}

bool RoundRows::IsWithout(const TaskKey& task) const {
  return leases_.NumLeases(task) == 0 &&
         !leases_.CanDeal(leases_.WishOf(task).step_rows);
}

int64_t RoundRows::CountWithout(const std::vector<TaskKey>& workers) {
  leases_.RecallAhead();
  return std::count_if(workers.begin(), workers.end(),
                       [this](const TaskKey& task) { return IsWithout(task); });
}

}  // namespace muster
