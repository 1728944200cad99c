#ifndef PS_SERVER_COORDINATOR_STEP_GRANTS_H_
#define PS_SERVER_COORDINATOR_STEP_GRANTS_H_

#include <functional>
#include <set>
#include <utility>

#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/row_leases.h"
#include "ps_server/coordinator/step_budget.h"
#include "ps_server/coordinator/step_rounds.h"

namespace muster {

// What becomes of the rows of a worker that goes on with its step no more.
enum class LeaveReason {
  // They come back, but it keeps those of its next steps.
  kGivesUp,
  // They are passed over; it keeps those of its next steps.
  kSkips,
  // All that it has come back.
  kFinishes,
  // It may come back with its step, of which some shards may have a part.
  kIsLost,
  // Another start of it comes.
  kIsReplaced,
};

// The grants of workers that do not share their steps, at most one a worker:
// each is one of the budget, and a begun lease. Not thread-safe.
class StepGrants {
 public:
  // Both outlive it; `live_tasks` gives the tasks that take part now.
  StepGrants(StepBudget& budget, RowLeases& leases,
             std::function<std::set<TaskKey>()> live_tasks)
      : budget_(budget), leases_(leases), live_tasks_(std::move(live_tasks)) {}

  bool Has(const TaskKey& task) const { return leases_.HasBegun(task); }
  // Takes one if there is one, and fills the task's queue; whether it has one.
  bool TryTake(const TaskKey& task);
  // The one that the task had when it was lost, if its rows are in no other
  // hands; whether it has one.
  bool TryResume(const TaskKey& task);
  // Whether others may have what it had.
  bool Leave(const TaskKey& task, LeaveReason reason);
  // The step is counted, if the task has a grant, or can have one.
  DecidedSteps Report(const StepRequest& report);
  // There are no grants, and the rows that are left are fewer than the smallest
  // step of a live task that `may_start`.
  bool HasNoRowsLeft(const std::function<bool(const TaskKey&)>& may_start);

 private:
  StepBudget& budget_;
  RowLeases& leases_;
  const std::function<std::set<TaskKey>()> live_tasks_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEP_GRANTS_H_
