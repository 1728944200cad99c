#ifndef WORKER_SESSION_SESSION_CORE_H_
#define WORKER_SESSION_SESSION_CORE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/wait_reporter.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/end_machine.h"
#include "worker/session/job_goal.h"
#include "worker/session/peer_table.h"
#include "worker/session/session_messages.h"

namespace muster {

// The part of a session that all its states share: what this task is, what it
// knows of its job and its peers, the actions of the present event, and the
// pauses and lines of a task that waits. Not thread-safe; no clock, no waiting.
class SessionCore {
 public:
  struct Options {
    TaskId self;
    bool chief = false;
    // For the text of waiting lines.
    TaskId chief_task;
    // Workers come and go, and who starts one may not know of the chief.
    bool takes_any_worker = false;
    // Those of the cluster, the chief among them; 0: not known.
    int listed_workers = 0;
    // "host:port" by ps task; {""} in this process.
    std::vector<std::string> ps_addresses;
    // The ps task in this process, in all-reduce; -1 if there is none.
    int own_ps = -1;
    // Hash of the model's names, shapes and optimizer.
    uint64_t model_fingerprint = 0;
    // Give up after waiting this long for others.
    absl::Duration max_wait = absl::Minutes(10);
    // How long the question for a step may wait at ps 0 for other workers; zero
    // in a mode where no step does. A signal is heard so much later.
    absl::Duration step_wait;
    // A task that comes when the job is over looks whether this is reached.
    JobGoal goal;
    // In a named namespace, which may have been given to another job by
    // mistake, and of a task whose index ps task 0 may have given twice: it is
    // asked before another start of this task is replaced.
    bool asks_before_takeover = false;
    // The chief: there is a train_dir, and the step of its newest checkpoint
    // when this process began; -1 if it has none.
    bool saves = false;
    int64_t saved_step = -1;
    // How the run in its train_dir has ended, as this task wants it to: "step
    // 200, by stop.steps". "": it has not.
    std::string finished;
  };

  explicit SessionCore(const Options& options);

  const Options& options() const { return options_; }
  PeerTable& peers() { return peers_; }
  const PeerTable& peers() const { return peers_; }
  EndMachine& end() { return end_; }
  const EndMachine& end() const { return end_; }
  // The name of ps task 0, for lines.
  std::string first_ps() const;
  // The time at which one of its waits or pauses is over.
  absl::Time next_wakeup() const;

  // ---- An event ----------------------------------------------------------
  void BeginEvent(absl::Time now);
  absl::Time now() const { return now_; }
  // The actions since BeginEvent.
  std::vector<SessionAction> ReleaseActions() { return std::move(actions_); }

  // ---- Actions; none after Exit ------------------------------------------
  void Do(SessionAction action);
  // One of the exclusive actions: nothing else of them until its event.
  void DoAlone(SessionAction action);
  void OnAnswered() { busy_ = false; }
  bool busy() const { return busy_; }
  void SayLine(std::string text, bool is_error = false);
  void GreetDuePeers();

  // Tells the coordinator first if it knows this task.
  void Fail(Exit exit);
  void ExitWith(Exit exit);
  bool exited() const { return exited_; }
  // The last line of a session that has ended for another reason than the job's
  // end; "" for none. REQUIRES: exited().
  void SayBeforeExit(std::string text);

  // ---- The job -----------------------------------------------------------
  // The newest state that the coordinator told.
  const JobState& state() const { return state_; }
  // The state unless it is older, and its news.
  void AdoptState(const JobState& state);
  // The state whatever its version is: of a ps task 0 that may be a new one.
  void ReplaceState(const JobState& state) { state_ = state; }
  // Is the committed epoch the one that the shards hold, and does the job go
  // on? REQUIRES: all peers are greeted.
  bool HasUsableEpoch() const;
  // This task is registered with the ps task 0 that was greeted.
  void OnRegistered(const JobState& state);
  // The incarnation of the ps task 0 that knows this task; 0: not registered.
  uint64_t registered_with() const { return registered_with_; }
  void ForgetRegistration() { registered_with_ = 0; }

  // ---- Lost peers --------------------------------------------------------
  // A call failed because a peer is gone or has forgotten this task: start over
  // with Hello, keeping what is known. The epoch is left as the event ends
  // (PopReconnect).
  void Reconnect(const absl::Status& why);
  // After a failure of the coordinator's calls: its fence means that a newer
  // start of this task has taken over, an invalid argument that this one is
  // wrong.
  void ReconnectOrYield(const absl::Status& why);
  // Was there a Reconnect since the last time?
  bool PopReconnect() { return std::exchange(reconnects_, false); }
  const std::string& reconnect_cause() const { return reconnect_cause_; }

  // ---- Waits and pauses --------------------------------------------------
  // Says every 10 s what is waited for; exits when it took too long.
  void WaitFor(const std::string& what) { WaitFor(&waiting_, what); }
  void WaitFor(WaitReporter* waiting, const std::string& what);
  // The same, by a task that has waited since this time at the latest.
  void WaitSince(absl::Time since, WaitReporter* waiting,
                 const std::string& what);
  void StopWaiting() { StopWaiting(&waiting_); }
  void StopWaiting(WaitReporter* waiting);
  // Since when peers or the chief are waited for; InfiniteFuture: they are not.
  absl::Time waiting_since() const { return waiting_.since(); }

  // Nothing exclusive is to be tried yet.
  bool Pause() const { return now_ < retry_at_; }
  void RetryLater();
  // What succeeds between two failures does not shorten the pauses.
  void OnProgress();
  void ForgetFailures() { failures_ = 0; }
  void PauseFor(absl::Duration pause);

 private:
  void FailRefused(const absl::Status& why);
  void SayNews();

  const Options options_;

  absl::Time now_ = absl::InfinitePast();
  std::vector<SessionAction> actions_;
  bool exited_ = false;
  // One of the exclusive actions is under way.
  bool busy_ = false;

  PeerTable peers_;
  EndMachine end_;
  JobState state_;
  uint64_t registered_with_ = 0;
  // The workers of an update that was said last; 0: none.
  int64_t update_workers_ = 0;

  bool reconnects_ = false;
  std::string reconnect_cause_;
  absl::Time retry_at_ = absl::InfinitePast();
  int failures_ = 0;
  // For peers and for the chief.
  WaitReporter waiting_;
};

// The soonest of these after `now`: while a call is under way nothing is said,
// and no time that is over wakes anybody.
absl::Time SoonestAfter(absl::Time now, std::initializer_list<absl::Time> due);

// The exit code `otherwise`, unless the call failed by damage that repeats did
// not get round: the network's fault, not this task's.
int UnlessDamaged(const absl::Status& status, int otherwise);

// The end of a task that a ps has refused; `text`: in more words than the
// status has.
Exit ExitOfRefusal(const absl::Status& status, std::string text = "");

// "/job:worker/task:1, /job:worker/task:2".
std::string TaskNames(const std::vector<TaskId>& tasks);

}  // namespace muster

#endif  // WORKER_SESSION_SESSION_CORE_H_
