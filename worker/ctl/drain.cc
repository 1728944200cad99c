// musterctl drain: a worker leaves a running job.
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "worker/ctl/steering.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

absl::StatusOr<std::string> Look(const TaskId& task, const JobState& state) {
  for (const WorkerState& worker : state.workers()) {
    if (worker.sender().task() != task) continue;
    if (worker.finished()) return absl::StrCat(TaskName(task), " has left\n");
    if (worker.lost()) return absl::StrCat(TaskName(task), " is lost\n");
    return std::string();
  }
  return absl::StrCat(TaskName(task), " is not there\n");
}

absl::Status Drain(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const TaskId task, ParseTaskName(call.arguments[0]));
  Wish wish;
  *wish.request.mutable_drain() = task;
  wish.waits_for = absl::StrCat(TaskName(task), " to leave");
  wish.look = [task](const SteerReply&, const JobState& state) {
    return Look(task, state);
  };
  return CarryOut(call, wish, result);
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "drain",
    {"/job:worker/task:N",
     "takes a worker out of a running job, and waits until it has left.\n"
     "  It finishes its step, gives its other rows back, and ends with 0; the "
     "job goes on.",
     SteeringFlags(), 1, 1, &Drain});

}  // namespace
}  // namespace muster
