#include "ps_server/coordinator/steering.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"

namespace muster {
namespace {

absl::Status NotNow(absl::string_view wish, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(wish, ": ", why));
}

}  // namespace

absl::StatusOr<SteerReply> Steering::Steer(const SteerRequest& request) {
  SteerReply reply;
  switch (request.wish_case()) {
    case SteerRequest::kSave: {
      ASSIGN_OR_RETURN(const int64_t number, saves_.AskByOperator());
      reply.set_save_request(number);
      return reply;
    }
    case SteerRequest::kStop:
      RETURN_IF_ERROR(Stop(/*discards=*/false));
      return reply;
    case SteerRequest::kStopWithoutSave:
      RETURN_IF_ERROR(Stop(/*discards=*/true));
      return reply;
    case SteerRequest::kDrain:
      RETURN_IF_ERROR(Drain(request.drain()));
      return reply;
    case SteerRequest::WISH_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "steer: the request has no wish that this ps knows; is musterctl newer?");
}

absl::Status Steering::Stop(bool discards) {
  if (discards_end_ && !discards) {
    return NotNow("stop",
                  "an operator ends the job already, without its last save");
  }
  // A repeat, or the end came first.
  if (job_.phase() == STOPPING || job_.phase() == DONE) return absl::OkStatus();
  if (job_.phase() == INITIAL) {
    return NotNow("stop",
                  "no model is committed, so that nobody trains yet; "
                  "end the tasks that wait by a signal");
  }
  if (job_.LiveChief() == nullptr) {
    return NotNow("stop",
                  absl::StrCat(TaskName(KeyOf(job_.chief())),
                               ", which ends and saves the job, is away; start "
                               "it again, or end the ps tasks by a signal"));
  }
  if (std::exchange(is_stopped_, true)) return absl::OkStatus();
  discards_end_ = discards;
  job_.Say(absl::StrCat("an operator stops the job",
                        discards ? ", without its last save" : ""));
  job_.RaiseVersion();
  return absl::OkStatus();
}

absl::Status Steering::Drain(const TaskId& task) {
  const std::string what =
      absl::StrCat("drain ", EscapeForLog(TaskName(task), 80));
  if (!IsTrainingJob(task.job())) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        ": only workers can leave a job in training; a ps task saves and "
        "ends by SIGTERM"));
  }
  const TaskKey key{task.job(), task.index()};
  const CoordinatorWorker* const found = job_.members().Find(key);
  if (found == nullptr || found->sender.incarnation() == 0) {
    return absl::NotFoundError(
        absl::StrCat(what,
                     ": this job has no such task; musterctl status "
                     "lists those that there are"));
  }
  if (found->may_be_chief) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        ": it is the chief, which saves the model; musterctl stop ends "
        "the whole job"));
  }
  CoordinatorWorker& worker = job_.members().FindOrAdd(key);
  if (worker.is_drained || !worker.IsThere()) return absl::OkStatus();
  worker.is_drained = true;
  job_.Say(absl::StrCat("an operator drains ", TaskName(task)));
  job_.RaiseVersion();
  return absl::OkStatus();
}

}  // namespace muster
