#ifndef WORKER_HOOK_NAN_GUARD_H_
#define WORKER_HOOK_NAN_GUARD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "worker/hook/hook.h"

namespace muster {

// The hook that refuses to push a step whose loss or gradients are not finite,
// so that none of it reaches a parameter; says which step and tensor. (If
// finite gradients had left in mid-backward, StepRecord::push_begun, none of
// the rest does.) After so many refused steps in a row the parameters, not the
// rows, are the cause, and it ends the training: the chief that of the job,
// another worker its own.
class NanGuard : public Hook {
 public:
  struct Options {
    // For the messages.
    std::string task_name;
    // In a row; more than 0.
    int64_t max_refusals = 1;
    // The chief's way to end the job. Null: this worker ends.
    RequestStop stop_job;
    // A line for the operator.
    Reporter reporter;
  };

  explicit NanGuard(Options options);

  // OutOfRange, after the last refusal of a worker that is not the chief, names
  // the task, the step, what was found and what helps.
  absl::StatusOr<PushDecision> BeforePush(const StepRecord& step) override;

  // Steps that were refused, in a row or not.
  int64_t refused() const { return refused_; }

 private:
  const Options options_;
  int64_t refused_ = 0;
  int64_t in_a_row_ = 0;
};

}  // namespace muster

#endif  // WORKER_HOOK_NAN_GUARD_H_
