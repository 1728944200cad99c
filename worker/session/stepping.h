#ifndef WORKER_SESSION_STEPPING_H_
#define WORKER_SESSION_STEPPING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/wait_reporter.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/session_core.h"
#include "worker/session/session_messages.h"
#include "worker/session/step_machine.h"

namespace muster {

// "/job:worker/task:1 lost 12 acknowledged steps with a ps".
std::string DescribeLostSteps(const TaskId& task, int64_t steps);

// The state of a session in a committed epoch: it enters the epoch, asks for
// each step and takes it. StepMachine knows how a step goes; this class says
// when, for whom it waits, and what a failed step leads to. Not thread-safe.
class Stepping {
 public:
  // `core` outlives it.
  explicit Stepping(SessionCore& core)
      : core_(core), steps_(core.options().step_wait) {}

  void On(const StepEvent& event);
  void On(const TrainEvent& event);
  // A peer is lost, and the epoch with it, for now.
  void OnReconnect();

  // Waits for the answer to a question for a step that is late.
  void AwaitAnswer();
  // Enters the committed epoch if that is not done. False after a failure.
  bool UseEpoch();
  // Takes the step that is granted, or asks for one.
  void Advance();
  absl::Time next_wakeup() const;

  const StepMachine& steps() const { return steps_; }
  // The committed epoch is the one that was entered.
  bool InEpoch() const;
  // The epoch of the report is lost, and the chief, which would have to restore
  // it, has ended.
  bool NobodyWantsReport() const;
  // The line of a step that may be in the parameters of an epoch that is not
  // lost, and may not be counted; "" if there is none.
  std::string DescribeUncounted() const;

  // ---- For other states --------------------------------------------------
  // Exits if not, or asks once more who has been told otherwise.
  bool ShardsHoldOwnModel();
  void LeaveEpoch() { steps_.Leave(); }
  // Reports the step before, and asks for the next or for the end of the job.
  void ReportStep(absl::string_view stop_reason);
  // Hello of an idle chief to all, at times. True if it greets now.
  bool GreetAgain();

 private:
  SessionCore& core_;

  StepMachine steps_;
  // The last state told of another model.
  bool doubts_state_ = false;
  // When an idle chief says Hello again; InfiniteFuture if it is not idle.
  absl::Time greet_at_ = absl::InfiniteFuture();

  // For other workers, while the epoch is fine.
  WaitReporter step_waiting_;
  // For a step to succeed after one that failed.
  WaitReporter failing_;
  // For the answer to the question for a step, which should be there by then;
  // InfiniteFuture while there is no such question.
  WaitReporter answer_waiting_;
  absl::Time answer_due_ = absl::InfiniteFuture();
};

}  // namespace muster

#endif  // WORKER_SESSION_STEPPING_H_
