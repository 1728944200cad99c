#ifndef PS_SERVER_COORDINATOR_ROUND_ROWS_H_
#define PS_SERVER_COORDINATOR_ROUND_ROWS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/row_leases.h"

namespace muster {

// The rows of a round of synchronous replication: dealt to all of its workers
// at once, in the order of the tasks, so that it does not matter who asks
// first. Not thread-safe.
class RoundRows {
 public:
  // It outlives this.
  explicit RoundRows(RowLeases& leases) : leases_(leases) {}

  // Deals a first lease to each of `workers` that has none; whether `needed`
  // workers have one, those that nobody can name yet included. Others than
  // `workers` have none afterwards that they have not begun. REQUIRES: no round
  // is open.
  bool DealFirsts(const std::set<TaskKey>& workers, int64_t needed);
  // Deals those ahead, one each and then another one each, for at most
  // `rounds`.
  void DealAhead(const std::set<TaskKey>& workers, int64_t rounds);
  // The worker of an open round has a lease, or gets one.
  bool TryDealTo(const TaskKey& task);
  // It has none, and cannot have one.
  bool IsWithout(const TaskKey& task) const;
  // The workers of whom that is so, once all leases ahead are recalled.
  int64_t CountWithout(const std::vector<TaskKey>& workers);

 private:
  RowLeases& leases_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_ROUND_ROWS_H_
