#ifndef WORKER_HOOK_JOB_SUMMARIES_H_
#define WORKER_HOOK_JOB_SUMMARIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/summary/write_summary.h"
#include "proto/coordination_service.pb.h"
#include "proto/summary.pb.h"
#include "worker/hook/hook.h"
#include "worker/hook/step_period.h"

namespace muster {

// The job's counts and when they were.
struct JobCounts {
  JobState state;
  // The clock's time of the look.
  absl::Time time;
};

// Adds what happened between two looks at one model epoch:
//   steps_per_s, examples_per_s              of all workers together
//   worker_1/steps_per_s, .../examples_per_s   of each
//   worker_1/staleness                       mean; if it took a step
//   staleness                                histogram over all workers
// REQUIRES: before.time < after.time.
void AddJobSummaries(const JobCounts& before, const JobCounts& after,
                     Summary* summary);

// The hook that writes AddJobSummaries every so many global steps. It asks ps
// task 0 for the counts without waiting; the step in which the answer is found
// writes it, at the global step that the answer has.
class JobSummaries : public Hook {
 public:
  // Calls `done` once, on any thread, possibly before it returns.
  using Ask =
      std::function<void(std::function<void(absl::StatusOr<JobState>)>)>;

  // `clock` outlives this, and every answer.
  JobSummaries(int64_t every_steps, const Clock* clock, Ask ask,
               WriteSummary write);

  absl::Status AfterEnter(const EpochRecord& epoch) override;
  absl::Status AfterStep(const StepRecord& step) override;
  absl::Status AtEnd(const EndRecord& end) override;

 private:
  // Shared with the callback, which may come after the end.
  struct Answer {
    absl::Mutex mu;
    bool pending ABSL_GUARDED_BY(mu) = false;
    std::optional<JobCounts> counts ABSL_GUARDED_BY(mu);
  };

  void AskForCounts();
  void UseAnswer();

  const Clock* const clock_;
  const Ask ask_;
  const WriteSummary write_;
  StepPeriod period_;
  int64_t model_epoch_ = 0;
  std::optional<JobCounts> before_;
  const std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

}  // namespace muster

#endif  // WORKER_HOOK_JOB_SUMMARIES_H_
