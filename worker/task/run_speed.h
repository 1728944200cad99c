#ifndef WORKER_TASK_RUN_SPEED_H_
#define WORKER_TASK_RUN_SPEED_H_

#include <cstdint>

#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "worker/task/result_file.h"

namespace muster {

// The times of a chief's run.
struct RunTimes {
  // The process's start.
  absl::Time start;
  // The entry into the model, and the examples that the job then had.
  absl::Time entered;
  int64_t first_examples = 0;
  absl::Time first_step;
  absl::Time stopped;
  // The end of the evaluation.
  absl::Time end;
};

// Fills in the rates, the counts and the workers of `result`, whose steps are
// set. What took no time has no rate.
void AddSpeed(const JobState& state, const RunTimes& times,
              TrainingResult* result);

}  // namespace muster

#endif  // WORKER_TASK_RUN_SPEED_H_
