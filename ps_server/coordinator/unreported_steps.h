#ifndef PS_SERVER_COORDINATOR_UNREPORTED_STEPS_H_
#define PS_SERVER_COORDINATOR_UNREPORTED_STEPS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/coordinator_worker.h"

namespace muster {

// Steps that a checkpoint counts, since every shard holds them, and that their
// workers have not reported yet. Such a step is counted whatever becomes of the
// worker: by its report or, if it is lost, replaced or gives the step up, by
// what is kept here. A value without clock. Not thread-safe.
class UnreportedSteps {
 public:
  // The step is the next one that the worker will report: it is of the current
  // start, not given up, of at most `step_rows` rows (0: any number), and its
  // counts go on from the worker's.
  static bool IsNextOf(const CoordinatorWorker& worker, const HeldStep& held,
                       int64_t step_rows);

  // REQUIRES: IsNextOf(worker, held, ...).
  void Add(const CoordinatorWorker& worker, const HeldStep& held);
  // Removes and returns the worker's, as its report would be, unless it was
  // reported.
  std::optional<StepRequest> Pop(const CoordinatorWorker& worker);
  // Forgets all: the epoch is over.
  void Clear() { reports_.clear(); }

 private:
  std::map<TaskKey, StepRequest> reports_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_UNREPORTED_STEPS_H_
