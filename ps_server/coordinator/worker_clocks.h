#ifndef PS_SERVER_COORDINATOR_WORKER_CLOCKS_H_
#define PS_SERVER_COORDINATOR_WORKER_CLOCKS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// Bounded staleness at ps task 0: the clock of a worker is the count of steps
// that it has finished in this model epoch. It may start a step only while its
// clock lag (its clock minus the slowest live worker's) is at most `bound`; 0
// is lock-step. A worker that comes, or comes back, starts at the slowest
// clock, so that nobody waits for what it has missed.
//
// So while a worker computes its clock lag is at most `bound`: the slowest
// clock never falls. Between a worker's pull and its push each of the N - 1
// others finishes at most 2 * bound + 1 steps, the most updates by which its
// gradient can be stale. Values that are read now serve, as well, in each later
// step up to the clock slowest_clock() + bound.
//
// Not thread-safe; no clock of time inside.
class WorkerClocks {
 public:
  // Errors: InvalidArgument for a bound below 0.
  static absl::Status Check(int32_t bound);

  // REQUIRES: Check(bound) is OK.
  explicit WorkerClocks(int32_t bound) : bound_(bound) {}

  // Who takes part from here on: newcomers enter, the others leave.
  void SetLive(const std::set<TaskKey>& live);
  // Forgets a task's clock: it was started anew.
  void Leave(const TaskKey& task) { clocks_.erase(task); }

  // `task` has finished a step. REQUIRES: it takes part.
  void FinishStep(const TaskKey& task);

  bool Has(const TaskKey& task) const { return clocks_.count(task) != 0; }
  // REQUIRES: it takes part.
  bool MayStart(const TaskKey& task) const { return Lag(task) <= bound_; }
  int64_t Lag(const TaskKey& task) const;
  // REQUIRES: it takes part.
  int64_t ClockOf(const TaskKey& task) const { return slowest_ + Lag(task); }
  std::vector<TaskKey> Slowest() const;
  int64_t slowest_clock() const { return slowest_; }
  int32_t bound() const { return bound_; }

 private:
  void UpdateSlowest();

  const int32_t bound_;
  std::map<TaskKey, int64_t> clocks_;
  // The smallest clock, or the last one while nobody takes part.
  int64_t slowest_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_WORKER_CLOCKS_H_
