#ifndef PS_SERVER_COORDINATOR_JOB_END_H_
#define PS_SERVER_COORDINATOR_JOB_END_H_

#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "ps_server/coordinator/end_listeners.h"
#include "ps_server/coordinator/job_record.h"
#include "ps_server/coordinator/job_saves.h"
#include "ps_server/coordinator/step_scheduler.h"
#include "ps_server/coordinator/task_numbers.h"

namespace muster {

// The end of a job: by its limits, when nobody is left, or when nobody comes
// any more; and who is to learn of it. Not thread-safe.
class JobEnd {
 public:
  // All four outlive it.
  JobEnd(JobRecord& job, JobSaves& saves, StepScheduler& steps,
         TaskNumbers& numbers)
      : job_(job),
        saves_(saves),
        steps_(steps),
        numbers_(numbers),
        listeners_(std::max(job.options().worker_timeout,
                            job.options().latecomer_wait)) {}

  EndListeners& listeners() { return listeners_; }
  const EndListeners& listeners() const { return listeners_; }
  // As JobState.abandoned.
  const std::string& abandoned() const { return abandoned_; }

  // The stop conditions of the committed epoch.
  void SetStop(const StopSpec& stop) { stop_ = stop; }
  const StopSpec& stop() const { return stop_; }
  // Takes the stop conditions of a chief that attaches to the committed epoch,
  // which may want another end of it. Errors: StepBudget::ChangeStop's.
  absl::Status ChangeStop(const CommitEpochRequest& commit, absl::Time now);

  // STOPPING when the limit is reached, DONE when nobody is left.
  void Check(absl::Time now);
  // The job goes on.
  void Reopen();
  // A caller that is no member trains, too.
  void HearOfOthers(absl::Time when) {
    others_heard_ = std::max(others_heard_, when);
  }
  void Tick(absl::Time now);
  // When Tick or Check wants to be called at the latest.
  absl::Time NextDeadline() const;

 private:
  void End(absl::Time now);
  bool EverybodyCame() const;
  // When nobody has trained for too long; InfiniteFuture while there are
  // workers, and where the end of the job has its own limits.
  absl::Time AbsenceDeadline() const;
  void Abandon();

  JobRecord& job_;
  JobSaves& saves_;
  StepScheduler& steps_;
  TaskNumbers& numbers_;

  EndListeners listeners_;
  StopSpec stop_;
  // The last word of a caller that is no member; at first, of the start.
  absl::Time others_heard_ = absl::InfinitePast();
  std::string abandoned_;
  // The time since which the job is STOPPING without a live task;
  // InfiniteFuture if it is not.
  absl::Time idle_since_ = absl::InfiniteFuture();
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_JOB_END_H_
