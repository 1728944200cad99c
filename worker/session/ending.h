#ifndef WORKER_SESSION_ENDING_H_
#define WORKER_SESSION_ENDING_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/wait_reporter.h"
#include "worker/session/connecting.h"
#include "worker/session/session_core.h"
#include "worker/session/session_messages.h"
#include "worker/session/stepping.h"

namespace muster {

// The state of a session on its way out of the job: after a signal, when
// replicas are too few, when the job stops or is DONE. EndMachine has the
// reasons, codes and words; this class says when. Not thread-safe.
class Ending {
 public:
  // All three outlive it.
  Ending(SessionCore& core, Connecting& connecting, Stepping& stepping)
      : core_(core), connecting_(connecting), stepping_(stepping) {}

  void On(const FinalEvent& event);
  void On(const FinishEvent& event);
  void On(const SignalEvent& event);
  void On(const StopEvent& event);
  void On(const LeaveEvent& event);
  void OnReconnect() { waiting_.Stop(); }

  // Hears what an operator wants of this task, as the job's state tells: the
  // chief ends the job, another task leaves it.
  void HearOperator();

  // Each advances the end, and is false where it is not at hand:
  // whatever the peers are,
  bool AdvanceAnyhow();
  // of all but the chief, with all peers there,
  bool AdvanceReported();
  // in the epoch, of the chief and of all who owe no report there.
  bool AdvanceStopping();
  absl::Time next_wakeup() const {
    return SoonestAfter(core_.now(), {waiting_.next_due()});
  }

 private:
  void OnStaying(const FinishEvent& event);
  void AdvanceLeaving();
  void AdvanceSignalled();
  // The chief's way from a signal to Finish. False while it is under way.
  bool Drain();
  // The same of another task, to its last report.
  bool ReportLast();
  // Back into the epoch. None: not yet; false: it will not be.
  std::optional<bool> ReachEpoch();
  void AdvanceTooFew();
  void AdvanceDone();
  void WaitForChief();
  void WaitForOthers();
  void SayFailedSave();
  void Save(bool completed, absl::string_view stop_reason);
  void Leave(SendFinish finish);

  SessionCore& core_;
  Connecting& connecting_;
  Stepping& stepping_;

  // For the chief's last save.
  WaitReporter waiting_;
};

}  // namespace muster

#endif  // WORKER_SESSION_ENDING_H_
