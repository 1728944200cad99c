#ifndef PS_SERVER_COORDINATOR_STEERING_H_
#define PS_SERVER_COORDINATOR_STEERING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/job_record.h"
#include "ps_server/coordinator/job_saves.h"

namespace muster {

// An operator's wishes for a job: a save, its end, a worker that leaves. They
// are told with the job's state; the tasks carry them out. Not thread-safe.
class Steering {
 public:
  // Both outlive it.
  Steering(JobRecord& job, JobSaves& saves) : job_(job), saves_(saves) {}

  // Takes a wish; the reply but for the state. Errors: InvalidArgument for a
  // wish that no job can have; NotFound for a worker that is not there;
  // FailedPrecondition in a phase in which the job cannot do it.
  absl::StatusOr<SteerReply> Steer(const SteerRequest& request);

  // A job that begins anew has no wishes.
  void Clear() { is_stopped_ = discards_end_ = false; }
  void AddTo(JobState& state) const {
    state.set_is_stopped(is_stopped_);
    state.set_discards_end(discards_end_);
  }

 private:
  absl::Status Stop(bool discards);
  absl::Status Drain(const TaskId& task);

  JobRecord& job_;
  JobSaves& saves_;
  bool is_stopped_ = false;
  // It ends without its last save.
  bool discards_end_ = false;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEERING_H_
