#ifndef WORKER_SESSION_JOB_GOAL_H_
#define WORKER_SESSION_JOB_GOAL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/coordination_service.pb.h"
#include "proto/evaluation_history.pb.h"
#include "proto/training.pb.h"

namespace muster {

// The stop conditions of a training, as far as a job's state tells whether they
// are reached.
struct JobGoal {
  StopSpec stop;
  // Examples of an epoch, and of an update: with fewer left the job ends.
  int64_t epoch_examples = 0;
  int64_t update_examples = 0;
};

// Have evaluations not become better for as long as stop.plateau allows?
bool IsPlateauReached(const StopSpec& stop, const EvaluationHistory& history);

// Is this the reason of a job that has ended as its training wanted?
bool IsStopCondition(absl::string_view reason);

// Whether a job that is DONE has reached one of them. What only its chief can
// judge is reached if the job ended for it, and wanted no less; an end for a
// hook's own reason is an end of every training. A goal without a condition is
// always reached.
bool IsReached(const JobGoal& goal, const JobState& job);

// "stop.steps 200 or stop.epochs 3".
std::string Describe(const JobGoal& goal);

}  // namespace muster

#endif  // WORKER_SESSION_JOB_GOAL_H_
