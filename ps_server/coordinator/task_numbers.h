#ifndef PS_SERVER_COORDINATOR_TASK_NUMBERS_H_
#define PS_SERVER_COORDINATOR_TASK_NUMBERS_H_

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps_server/coordinator/members.h"

namespace muster {

// The indices of workers that come without one, where the cluster lists none:
// from 1 on, since worker 0 is the chief, who has the disk. Not thread-safe; no
// clock.
class TaskNumbers {
 public:
  // So long an index is kept for who was given it and has not registered.
  static constexpr absl::Duration kReserved = absl::Seconds(10);

  // The index that this start has, or was given; else the first that no task
  // has or had; without such a one that of a task that has finished, at last
  // that of one that is lost. Errors: ResourceExhausted.
  absl::StatusOr<int32_t> Assign(uint64_t incarnation, const Members& members,
                                 absl::Time now);

  // Forgets those who have had time to register.
  void Tick(absl::Time now);
  // When Tick next changes something; InfiniteFuture if never.
  absl::Time NextDeadline() const;
  // Is an index kept for anybody?
  bool IsKept() const { return !kept_.empty(); }

 private:
  struct Kept {
    uint64_t incarnation;
    absl::Time until;
  };

  // By index.
  std::map<int32_t, Kept> kept_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_TASK_NUMBERS_H_
