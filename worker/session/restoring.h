#ifndef WORKER_SESSION_RESTORING_H_
#define WORKER_SESSION_RESTORING_H_

#include "worker/session/chief_machine.h"
#include "worker/session/session_core.h"
#include "worker/session/session_messages.h"
#include "worker/session/stepping.h"

namespace muster {

// The state of a registered session without a usable epoch: the chief begins
// one, loads the shards and commits, the others wait for it. ChiefMachine knows
// how; this class says when, and what a failure leads to. Not thread-safe.
class Restoring {
 public:
  // `core` and `stepping` outlive it.
  Restoring(SessionCore& core, Stepping& stepping)
      : core_(core), stepping_(stepping) {}

  void On(const BeginEpochEvent& event);
  void On(const LoadEvent& event);
  void On(const CommitEvent& event);

  // REQUIRES: the committed epoch is not usable.
  void Advance();
  // Tells ps task 0 of the chief's stop conditions if the running job has
  // others, of an earlier start of it. Whether it does. REQUIRES: the committed
  // epoch is usable.
  bool AdvanceStop();

 private:
  void ResumeEpoch();
  void WaitForChief();

  SessionCore& core_;
  Stepping& stepping_;

  ChiefMachine chief_;
};

}  // namespace muster

#endif  // WORKER_SESSION_RESTORING_H_
