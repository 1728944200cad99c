#include "ps_server/coordinator/step_grants.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace muster {

bool StepGrants::TryTake(const TaskKey& task) {
  if (Has(task)) return true;
  if (!budget_.TryGrant()) return false;
  const bool has_own = leases_.TryReclaim(task) || leases_.NumLeases(task) > 0;
  // There would be no step for some of those that are not begun.
  if (!has_own && leases_.num_waiting() > budget_.grants_left()) {
    leases_.Recall();
  }
  bool has_rows = has_own || leases_.TryDealFirst(task);
  if (!has_rows) {
    leases_.Recall();
    has_rows = leases_.TryDealFirst(task);
  }
  if (!has_rows) {
    budget_.Return();
    return false;
  }
  leases_.Begin(task);
  const auto wanted = static_cast<size_t>(leases_.WishOf(task).ahead) + 1;
  while (leases_.NumLeases(task) < wanted &&
         leases_.num_waiting() < budget_.grants_left() &&
         leases_.TryDealAhead(task)) {
  }
  return true;
}

bool StepGrants::TryResume(const TaskKey& task) {
  if (Has(task)) return true;
  if (!budget_.TryGrant()) return false;
  if (leases_.TryReclaim(task)) return true;
  budget_.Return();
  return false;
}

bool StepGrants::Leave(const TaskKey& task, LeaveReason reason) {
  const bool had_one = Has(task);
  if (had_one) budget_.Return();
  switch (reason) {
    case LeaveReason::kGivesUp:
      leases_.GiveBack(task);
      leases_.ForgetLapsed(task);
      return had_one;
    case LeaveReason::kSkips:
      if (had_one) leases_.Skip(task);
      leases_.ForgetLapsed(task);
      return had_one;
    case LeaveReason::kFinishes:
      return leases_.Leave(task, /*may_repeat=*/false);
    case LeaveReason::kIsLost:
      return leases_.Lapse(task, /*may_repeat=*/true);
    case LeaveReason::kIsReplaced:
      return leases_.Leave(task, /*may_repeat=*/true);
  }
  return false;
}

DecidedSteps StepGrants::Report(const StepRequest& report) {
  const TaskKey task = KeyOf(report.sender());
  if (leases_.IsOfLapsed(task, report.rows())) {
    leases_.ForgetLapsed(task);
    return {};
  }
  // A worker that was lost and comes back took this step on a grant that was
  // returned. It counts if another is left, and its rows are; if not, they are
  // in other hands, and counting it would pass the limit.
  if (!TryResume(task)) {
    const bool had_lapsed = leases_.HasLapsed(task);
    leases_.ForgetLapsed(task);
    if (had_lapsed || !TryTake(task)) return {};
  }
  budget_.Report(report.examples());
  Delivery step = Delivery::Of(report);
  step.rows = leases_.Finish(task);
  leases_.ForgetLapsed(task);
  return {{std::move(step)}, {}};
}

bool StepGrants::HasNoRowsLeft(
    const std::function<bool(const TaskKey&)>& may_start) {
  if (budget_.outstanding() > 0 || leases_.CanDeal(leases_.most_step_rows())) {
    return false;
  }
  leases_.Recall();
  const std::set<TaskKey> live = live_tasks_();
  return !live.empty() &&
         std::none_of(live.begin(), live.end(), [&](const TaskKey& task) {
           return may_start(task) &&
                  leases_.CanDeal(leases_.WishOf(task).step_rows);
         });
}

}  // namespace muster
