#ifndef WORKER_EXECUTOR_STEP_SCHEDULE_H_
#define WORKER_EXECUTOR_STEP_SCHEDULE_H_

#include <cstddef>
#include <vector>

#include "worker/model/execution_plan.h"

namespace muster {

// When in a plan what others wait for comes: parameters before they are read,
// the loss and the gradients when they are what the step leaves.
struct StepSchedule {
  // The parameters that each instruction reads first: directly, to copy them to
  // another layout, or for their penalty.
  std::vector<std::vector<int>> first_used_by;
  // The instruction that makes the loss; penalties add to it later.
  size_t loss_instruction = 0;
  // The one after which the host can read it: the same, or its copy's.
  size_t loss_there_after = 0;
  // The parameters whose gradients are final after each instruction, and which
  // are not read any more.
  std::vector<std::vector<int>> final_after;
  // After the last instruction their averages are read, and their gradients
  // written.
  std::vector<int> averaged_parameters;
};

StepSchedule ScheduleStep(const ExecutionPlan& plan, size_t num_parameters);

}  // namespace muster

#endif  // WORKER_EXECUTOR_STEP_SCHEDULE_H_
