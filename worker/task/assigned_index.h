#ifndef WORKER_TASK_ASSIGNED_INDEX_H_
#define WORKER_TASK_ASSIGNED_INDEX_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/process/stop_latch.h"
#include "common/rpc/link.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// A worker that has no number yet, in a cluster that takes any.
struct UnnumberedWorker {
  // The namespace of the ps tasks in which its job trains.
  std::string job_namespace;
  // As WorkerOptions'.
  uint64_t incarnation = 1;
  // The address of ps task 0, for messages.
  std::string ps_address;
  absl::Duration max_wait = absl::Hours(2);
  Reporter reporter;
  const Clock* clock = nullptr;
  // Ends the wait; may be null.
  StopLatch* latch = nullptr;
  // As NetworkChoice's.
  bool is_network_trusted = false;
};

// Asks ps task 0 for the worker's index in its job, over `ps_0`, or whether the
// job is at its end; waits for it as a worker waits for its ps tasks, and says
// so. Errors: Unavailable after max_wait; stopped (IsStopped) once the latch
// is; the refusals of ps task 0.
absl::StatusOr<AssignTaskReply> AcquireIndex(const UnnumberedWorker& worker,
                                             Link* ps_0);

// The same over a link of its own, without keys. Errors: also those of
// CheckConnectAddress.
absl::StatusOr<AssignTaskReply> AcquireIndex(const UnnumberedWorker& worker);

}  // namespace muster

#endif  // WORKER_TASK_ASSIGNED_INDEX_H_
