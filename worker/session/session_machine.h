#ifndef WORKER_SESSION_SESSION_MACHINE_H_
#define WORKER_SESSION_SESSION_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/wait_reporter.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/chief_machine.h"
#include "worker/session/end_machine.h"
#include "worker/session/job_goal.h"
#include "worker/session/peer_table.h"
#include "worker/session/session_messages.h"
#include "worker/session/step_machine.h"

namespace muster {

// "/job:worker/task:1 lost 12 acknowledged steps with a ps".
std::string DescribeLostSteps(const TaskId& task, int64_t steps);

// The life of one worker or chief, from its first Hello to its exit code:
// README.md draws it. What happened comes in as events, what is to be done goes
// out as actions; the machine itself knows no thread, clock, file or RPC. It
// says when; how an epoch begins, a step goes and the job is left, its parts
// know: ChiefMachine, StepMachine, EndMachine.
//
// At most one of BeginEpoch, LoadModel, Commit, SendStep, TrainStep,
// ResumeStep, RunFinal and SendFinish is under way at a time; Hello, Register
// and Watch go on beside it. After Exit there are no more actions. Not
// thread-safe.
class SessionMachine {
 public:
  struct Options {
    TaskId self;
    bool chief = false;
    // For the text of waiting lines.
    TaskId chief_task;
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
    // mistake: ps task 0 is asked before another start of this task is
    // replaced.
    bool asks_before_takeover = false;
    // The chief: there is a train_dir, and the step of its newest checkpoint
    // when this process began; -1 if it has none.
    bool saves = false;
    int64_t saved_step = -1;
    // How the run in its train_dir has ended, as this task wants it to: "step
    // 200, by stop.steps". "": it has not.
    std::string finished;
  };

  explicit SessionMachine(const Options& options);

  // Takes what happened at `now`, returns what to do, in order.
  std::vector<SessionAction> Handle(const SessionEvent& event, absl::Time now);

  // Handle(TickEvent) wants to be called at this time at the latest.
  absl::Time next_wakeup() const;

  // A ps that is about to stop waits for this chief's save.
  bool WantsSave() const;

  // The newest state that the coordinator told.
  const JobState& job_state() const { return state_; }

 private:
  using Actions = std::vector<SessionAction>;

  void On(const HelloEvent& event);
  void On(const RegisterEvent& event);
  void On(const WatchEvent& event);
  void On(const BeginEpochEvent& event);
  void On(const LoadEvent& event);
  void On(const CommitEvent& event);
  void On(const StepEvent& event);
  void On(const TrainEvent& event);
  void On(const FinalEvent& event);
  void On(const FinishEvent& event);
  void On(const SaveReportLostEvent& event);
  void On(const SignalEvent& event);
  void On(const StopEvent& event);
  void On(const TickEvent&) {}

  // Everything that the present state asks for; called after each event.
  void Advance();
  void AdvanceLeaving();
  bool Connect();
  void WaitForPs();
  void AskForEnd();
  void GreetDuePeers();
  void Register();
  bool MayTakeOver();
  void OnAsked(const absl::StatusOr<RegisterReply>& reply);
  bool WantsToGoOn(const JobState& state) const;
  void ResumeEpoch();
  // Exits if not, or asks once more who has been told otherwise.
  bool ShardsHoldOwnModel();
  void AdvanceWithoutEpoch();
  bool UseEpoch();
  // The committed epoch is the one that was entered.
  bool InEpoch() const;
  void AdvanceRunning();
  bool GreetAgain();
  void WaitForAnswer();
  void ReportStep(absl::string_view stop_reason);
  bool NobodyWantsReport() const;
  void AskToSave();
  void RepeatSaveReport();

  // ---- The end; EndMachine has its reasons, codes and words ---------------
  void AdvanceSignalled();
  // The chief's way from a signal to Finish. False while it is under way.
  bool Drain();
  // The same of another task, to its last report.
  bool ReportLast();
  // Back into the epoch. None: not yet; false: it will not be.
  std::optional<bool> ReachEpoch();
  void AdvanceTooFew();
  void AdvanceReported();
  void AdvanceStopping();
  void AdvanceDone();
  void Save(bool completed, absl::string_view stop_reason);
  void Leave(SendFinish finish);
  void OnStaying(const FinishEvent& event);
  void OnRegisteredAgain(const absl::Status& status);

  // A call failed because a peer is gone or has forgotten us: start over with
  // Hello, keeping what is known.
  void Reconnect(const absl::Status& why);
  void ReconnectOrYield(const absl::Status& why);
  void FailRefused(const absl::Status& why);
  void AdoptState(const JobState& state);
  // Says what the newest state has that is new.
  void SayNews();
  void Fail(Exit exit);
  void ExitWith(Exit exit);
  void SayUncounted();
  void SayLine(std::string text, bool is_error = false);

  // Says every 10 s what is waited for; exits when it took too long.
  void WaitFor(const std::string& what) { WaitFor(&waiting_, what); }
  void WaitFor(WaitReporter* waiting, const std::string& what);
  void WaitForOthers(const StepReply& reply);
  void StopWaiting(WaitReporter* waiting);
  bool Pause() { return now_ < retry_at_; }
  // What succeeds between two failures does not shorten the pauses.
  void OnProgress();
  void RetryLater();

  const Options options_;

  absl::Time now_ = absl::InfinitePast();
  Actions actions_;
  bool exited_ = false;

  PeerTable peers_;
  JobState state_;
  // Incarnation of the ps 0 that knows us; 0: not registered.
  uint64_t registered_with_ = 0;
  DataPosition registered_position_;
  std::string reconnect_cause_;
  bool register_in_flight_ = false;
  // As RegisterRequest.takeover.
  uint64_t register_takeover_ = 0;
  // A question whether this task may take over is under way; it may.
  bool is_asking_ = false;
  bool may_take_over_ = false;
  // When ps task 0 is asked whether the job is over, though others are missing.
  absl::Time ask_at_ = absl::InfiniteFuture();
  // It has been a member; its registering makes a job that is DONE go on.
  bool was_member_ = false;
  // The last state told of another model.
  bool doubts_state_ = false;
  bool goes_on_ = false;
  bool watching_ = false;

  ChiefMachine chief_;
  StepMachine steps_;
  EndMachine end_;
  // One of the exclusive actions is under way.
  bool busy_ = false;
  // Nothing exclusive before this time.
  absl::Time retry_at_ = absl::InfinitePast();
  int failures_ = 0;
  // When an idle chief says Hello again; InfiniteFuture if it is not idle.
  absl::Time greet_at_ = absl::InfiniteFuture();

  int64_t save_requests_seen_ = 0;
  // A step that was granted before a save was asked for goes before it: it has
  // this number at most. -1: none is asked for.
  int64_t save_after_step_ = -1;
  // To be sent once more, at this time.
  std::optional<SendSaveReport> save_report_;
  absl::Time save_report_at_ = absl::InfiniteFuture();

  // The workers of an update that was said last; 0: none.
  int64_t update_workers_ = 0;

  WaitReporter waiting_;
  // For other workers, while the epoch is fine.
  WaitReporter step_waiting_;
  // For a step to succeed after one that failed.
  WaitReporter failing_;
  // For the chief's last save.
  WaitReporter end_waiting_;
  // For the answer to the question for a step, which should be there by then;
  // InfiniteFuture while there is no such question.
  WaitReporter answer_waiting_;
  absl::Time answer_due_ = absl::InfiniteFuture();
};

}  // namespace muster

#endif  // WORKER_SESSION_SESSION_MACHINE_H_
