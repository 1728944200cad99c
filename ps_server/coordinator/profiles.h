#ifndef PS_SERVER_COORDINATOR_PROFILES_H_
#define PS_SERVER_COORDINATOR_PROFILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/job_record.h"

namespace muster {

// The newest profile of a job: which workers are to record their next steps,
// told with the job's state, and the parts that have come, until somebody has
// fetched them. Not thread-safe; no clock.
class Profiles {
 public:
  static constexpr int kMostSteps = 1000;
  // Of one profile.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  // Longer than anybody waits for one (musterctl profile --max_wait).
  static constexpr absl::Duration kKept = absl::Minutes(15);

  // `job` outlives it.
  explicit Profiles(const JobRecord& job) : job_(job) {}

  // Asks each worker that takes steps now; the profile before is forgotten.
  // Errors: InvalidArgument; FailedPrecondition unless the job is RUNNING.
  absl::StatusOr<BeginProfileReply> Begin(const BeginProfileRequest& request,
                                          absl::Time now);
  // Errors: InvalidArgument for a part that is too large, or of another task;
  // FailedPrecondition for one of another profile; ResourceExhausted.
  absl::StatusOr<AddProfileReply> Add(const AddProfileRequest& request);
  // Errors: InvalidArgument; Aborted for a profile that another has replaced;
  // NotFound for one that is not here.
  absl::StatusOr<GetProfileReply> Get(const GetProfileRequest& request) const;

  // Forgets the newest one.
  void Clear();
  void Tick(absl::Time now) {
    if (now >= until_) Clear();
  }
  // Nothing once all have sent theirs.
  void AddTo(JobState& state) const;

 private:
  struct Asked {
    uint64_t incarnation = 0;
    bool had_no_room = false;
  };

  absl::Status CheckPart(const AddProfileRequest& request) const;
  // Why its part will not come; "" if it may.
  std::string WhyMissing(const TaskKey& key, const Asked& asked) const;

  const JobRecord& job_;
  // Of all that were begun.
  int64_t newest_ = 0;
  // 0: none is here.
  int32_t steps_ = 0;
  absl::Time until_ = absl::InfiniteFuture();
  // Those whose part has not come.
  std::map<TaskKey, Asked> asked_;
  std::vector<ProfilePart> parts_;
  int64_t bytes_ = 0;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_PROFILES_H_
