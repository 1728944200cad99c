#ifndef WORKER_HOOK_JOB_PROFILE_H_
#define WORKER_HOOK_JOB_PROFILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/link.h"
#include "common/summary/profile_timeline.h"
#include "proto/coordination_service.pb.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_timeline.h"

namespace muster {

// The hook that takes part in the profiles of a job (musterctl profile): while
// the job's state asks for one, it records the worker's next steps, then sends
// them to ps task 0 from a thread of its own, with by how much the own clock is
// off. Costs nothing else. Each profile once.
class JobProfile : public Hook {
 public:
  struct Options {
    Sender sender;
    StepTimeline::Options spans;
    // To ps task 0. Null: nobody asks, as where a worker is alone.
    Link* coordination = nullptr;
    // The newest that is known.
    std::function<const JobState&()> job_state;
    // The steps from then on whose StepTimes::devices are wanted.
    std::function<void(const ProfiledSteps&)> trace_devices;
  };

  // `clock`, and what options point to, outlive this.
  JobProfile(Options options, const Clock* clock, Reporter reporter);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterStep(const StepRecord& step) override;
  // The same of a worker that waits for its first step, or for others.
  absl::Status AfterWait(int64_t global_step) override;
  // Sends what there is; what is on its way is waited for.
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  struct Recording {
    Recording(const Options& options, const JobState& state);

    const int64_t number;
    // Those that are missing.
    int64_t steps_left;
    ProfileTimeline timeline;
    StepTimeline steps;
  };

  // Begins what the job's state asks for, ends what it does no longer.
  void TakeUp();
  void Send();
  absl::Status SendPart(int64_t number, ProfilePart part) const;
  absl::Status ReadClock(ProfilePart* part) const;

  const Options options_;
  const Clock& clock_;
  const Reporter reporter_;
  // The newest that it has taken part in, or does.
  int64_t number_ = 0;
  std::unique_ptr<Recording> recording_;
  // Last: uses the others.
  std::unique_ptr<ClockThread> sender_;
};

}  // namespace muster

#endif  // WORKER_HOOK_JOB_PROFILE_H_
