#ifndef WORKER_HOOK_NAN_GUARD_H_
#define WORKER_HOOK_NAN_GUARD_H_

#include <string>

#include "worker/hook/hook.h"

namespace muster {

// Stops the training at the first loss that is not finite, before its gradient
// reaches a shard.
class NanGuard : public Hook {
 public:
  // `task_name` is for the message.
  explicit NanGuard(std::string task_name);

  // OutOfRange names the task, the step, the loss and what helps.
  absl::StatusOr<PushDecision> BeforePush(const StepRecord& step) override;

 private:
  const std::string task_name_;
};

}  // namespace muster

#endif  // WORKER_HOOK_NAN_GUARD_H_
