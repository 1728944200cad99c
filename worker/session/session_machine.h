#ifndef WORKER_SESSION_SESSION_MACHINE_H_
#define WORKER_SESSION_SESSION_MACHINE_H_

#include <vector>

#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/connecting.h"
#include "worker/session/ending.h"
#include "worker/session/requested_saves.h"
#include "worker/session/restoring.h"
#include "worker/session/session_core.h"
#include "worker/session/session_messages.h"
#include "worker/session/stepping.h"

namespace muster {

// The life of one worker or chief, from its first Hello to its exit code. What
// happened comes in as events, what is to be done goes out as actions; the
// machine itself knows no thread, clock, file or RPC.
//
//                 .------------------ 5 ------------------.
//                 v                                       |
//   (start) --> Connecting --- 1 ---> Restoring           |
//                 |                    |     ^            |
//                 |                  2 |     | 4          |
//                 |                    v     |            |
//                 '------- 3 --------> Stepping --- 6 --> Ending -- 7 --> Exit
//
//   1  Every ps task has answered Hello, ps task 0 has registered this task,
//      and the shards do not hold the committed epoch.
//   2  The chief has begun an epoch, loaded the shards and committed.
//   3  As 1, but the shards hold the committed epoch: it is attached to.
//   4  A ps was started anew, or another epoch is being loaded: Hello says so.
//   5  A call failed because a ps is gone or has forgotten this task; from
//      Restoring and Stepping too. The job may have been at its end: without
//      its last save it goes on from a checkpoint.
//   6  A signal, too few replicas, or a job that is STOPPING or DONE; from
//      Connecting and Restoring too.
//   7  Ps task 0 has heard Finish, or cannot be told.
//
// A class a state owns what that state alone knows; some of it outlives the
// state (the report of a step, an answer that is under way). Which state is due
// is not stored: Advance finds it after each event.
//
//   event        | Connecting    | Restoring    | Stepping       | Ending
//   -------------+---------------+--------------+----------------+-------------
//   Hello        | 1, 3, or once | may be       | 4 if a ps has  | as in the
//                | more          | usable now   | another epoch  | others
//   Register     | 1, 3          | -            | -              | Finish again
//   Watch: state | -             | 2 of others  | asks again; 6  | DONE: 7
//   Watch: error | 5             | 5            | 5              | 5, if not
//                |               |              |                | finishing
//   BeginEpoch   | LoadModel     | LoadModel    | -              | LoadModel
//   Load         | SendCommit    | SendCommit   | -              | SendCommit
//   Commit       | adopted       | 2            | -              | adopted
//   Step         | grant is lost | -            | TrainStep, or  | drains
//                |               |              | asks again     |
//   Train        | report kept   | report kept  | reports it; 5  | reports it
//   Final        | -             | -            | -              | Finish; 5
//   Finish       | -             | -            | -              | 7, or again
//   SaveReport-  | kept          | sent again   | sent again     | -
//     Lost       |               |              |                |
//   Signal       | 6 as soon as no call is under way             | 7 sooner
//   Stop         | kept          | kept         | asks for 6     | kept
//   Leave        | kept          | 6; of the    | 6; of the      | kept
//                |               | chief kept   | chief 6 behind |
//                |               |              | the others     |
//   Tick         | what is due by then (next_wakeup)
//
// At most one of BeginEpoch, LoadModel, Commit, SendStep, TrainStep,
// ResumeStep, RunFinal and SendFinish is under way at a time; Hello, Register
// and Watch go on beside it. After Exit there are no more actions. Not
// thread-safe.
class SessionMachine {
 public:
  using Options = SessionCore::Options;

  explicit SessionMachine(const Options& options) : core_(options) {}
  // Its states refer to one another.
  SessionMachine(const SessionMachine&) = delete;
  SessionMachine& operator=(const SessionMachine&) = delete;

  // Takes what happened at `now`, returns what to do, in order.
  std::vector<SessionAction> Handle(const SessionEvent& event, absl::Time now);

  // Handle(TickEvent) wants to be called at this time at the latest.
  absl::Time next_wakeup() const;

  // A ps that is about to stop waits for this chief's save.
  bool WantsSave() const { return saves_.WantsSave(); }

  // The newest state that the coordinator told.
  const JobState& job_state() const { return core_.state(); }

 private:
  void On(const HelloEvent& event) { connecting_.On(event); }
  void On(const RegisterEvent& event);
  void On(const WatchEvent& event) { connecting_.On(event); }
  void On(const BeginEpochEvent& event) { restoring_.On(event); }
  void On(const LoadEvent& event) { restoring_.On(event); }
  void On(const CommitEvent& event) { restoring_.On(event); }
  void On(const StepEvent& event) { stepping_.On(event); }
  void On(const TrainEvent& event) { stepping_.On(event); }
  void On(const FinalEvent& event) { ending_.On(event); }
  void On(const FinishEvent& event) { ending_.On(event); }
  void On(const SaveReportLostEvent& event) { saves_.On(event); }
  void On(const SignalEvent& event) { ending_.On(event); }
  void On(const StopEvent& event) { ending_.On(event); }
  void On(const LeaveEvent& event) { ending_.On(event); }
  void On(const TickEvent&) {}

  // Everything that the present state asks for; called after each event.
  void Advance();
  void LeaveLostEpoch();

  SessionCore core_;
  Connecting connecting_{core_};
  Stepping stepping_{core_};
  Restoring restoring_{core_, stepping_};
  RequestedSaves saves_{core_, stepping_};
  Ending ending_{core_, connecting_, stepping_};
};

}  // namespace muster

#endif  // WORKER_SESSION_SESSION_MACHINE_H_
