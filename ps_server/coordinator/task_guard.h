#ifndef PS_SERVER_COORDINATOR_TASK_GUARD_H_
#define PS_SERVER_COORDINATOR_TASK_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/admission.h"
#include "ps_server/coordinator/job_record.h"
#include "ps_server/coordinator/takeover_questions.h"

namespace muster {

// The guard of tasks that are there and alive
// (CoordinatorOptions.guards_tasks): another start of one is refused, or waits
// until that is known. Not thread-safe.
class TaskGuard {
 public:
  // Both outlive it.
  TaskGuard(JobRecord& job, const Admission& admission)
      : job_(job), admission_(admission) {}

  // Errors: InvalidArgument if another start of the sender's task is there, and
  // alive or with another training; Unavailable until that is known.
  absl::Status Check(const RegisterRequest& request, absl::Time now);

 private:
  absl::Status CheckReplaceable(const CoordinatorWorker& holder, uint64_t asker,
                                absl::Time now);

  JobRecord& job_;
  const Admission& admission_;
  TakeoverQuestions questions_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_TASK_GUARD_H_
