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
#include "worker/session/job_goal.h"
#include "worker/session/peer_table.h"
#include "worker/session/session_messages.h"

namespace muster {

// "/job:worker/task:1 lost 12 acknowledged steps with a ps".
std::string DescribeLostSteps(const TaskId& task, int64_t steps);

// The life of one worker or chief, from its first Hello to its exit code:
// README.md draws it. What happened comes in as events, what is to be done goes
// out as actions; the machine itself knows no thread, clock, file or RPC.
//
// At most one of BeginEpoch, LoadModel, Commit, SendStep, TrainStep, RunFinal
// and SendFinish is under way at a time; Hello, Register and Watch go on beside
// it. After Exit there are no more actions. Not thread-safe.
class SessionMachine {
 public:
  struct Options {
    TaskId self;
    bool chief = false;
    // For the text of waiting lines.
    TaskId chief_task;
    // "host:port" by ps task; {""} in this process.
    std::vector<std::string> ps_addresses;
    // Hash of the model's names, shapes and optimizer.
    uint64_t model_fingerprint = 0;
    // Give up after waiting this long for others.
    absl::Duration max_wait = absl::Minutes(10);
    // How long the question for a step may wait at ps 0 for other workers; zero
    // in a mode where no step does. A signal is heard so much later.
    absl::Duration step_wait;
    // A task that comes when the job is over looks whether this is reached.
    JobGoal goal;
    // The chief: there is a train_dir, and the step of its newest checkpoint
    // when this process began; -1 if it has none.
    bool saves = false;
    int64_t saved_step = -1;
  };

  explicit SessionMachine(const Options& options);

  // Takes what happened at `now`, returns what to do, in order.
  std::vector<SessionAction> Handle(const SessionEvent& event, absl::Time now);

  // Handle(TickEvent) wants to be called at this time at the latest.
  absl::Time next_wakeup() const;

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
  bool Connect();
  void GreetDuePeers();
  void Register();
  void AdvanceSignalled();
  // The chief's way from a signal to Finish. False while it is under way.
  bool Drain();
  void AdvanceWithoutEpoch();
  void AdvanceRunning();
  void AdvanceStopping();
  void AdvanceReported();
  void Stay();
  void AdvanceDone();
  bool IsSaved() const;
  std::string DescribeEarlierEnd() const;
  void EndTooLate();
  void EndWithoutSave(absl::string_view why);
  bool UseEpoch();
  // The committed epoch is the one that was entered.
  bool InEpoch() const;
  bool NobodyWantsReport() const;
  void ReportStep(absl::string_view stop_reason);
  void OnRefused(const StepReply& reply);
  // Counts the steps of this worker that ps task 0 has counted.
  void CountAcknowledged(const StepReply& reply);
  // The epoch that is entered has kept so many of them.
  void SayLostSteps(int64_t kept, uint64_t first_ps_incarnation);
  void AdvanceTooFew();
  bool JobHasTooFewReplicas() const;
  void FinishCompleted();
  bool GreetAgain();
  void AskToSave();
  void RepeatSaveReport();
  bool IsUnknownToNewPs(const absl::Status& status) const;
  bool IsLastFinishAttempt();
  void OnStaying(const FinishEvent& event);
  void OnFinished(const JobState& state);
  // A chief that stays until the job is DONE knows that it is.
  bool HasSeenTheEnd() const {
    return finish_until_ < absl::InfiniteFuture() && state_.phase() == DONE;
  }
  bool JobHasFailed() const;
  std::string DescribeFailedJob() const;
  void OnRegisteredToFinish(const absl::Status& status);
  bool YieldAtEnd(const absl::Status& why);

  // A call failed because a peer is gone or has forgotten us: start over with
  // Hello, keeping what is known.
  void Reconnect(const absl::Status& why);
  void ReconnectOrYield(const absl::Status& why);
  void FailRefused(const absl::Status& why);
  void AdoptState(const JobState& state);
  void SayIfFinishedBefore();
  void Finish(absl::string_view reason, bool stop_job);
  void Fail(int code, std::string text);
  void ExitWith(int code, std::string text);

  // Says every 10 s what is waited for; exits when it took too long.
  void WaitFor(const std::string& what) { WaitFor(&waiting_, what); }
  void WaitFor(WaitReporter* waiting, const std::string& what);
  void StopWaiting(WaitReporter* waiting);
  bool Pause() { return now_ < retry_at_; }
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
  // It was registered when the job was not over yet.
  bool came_in_time_ = false;
  std::string reconnect_cause_;
  bool register_in_flight_ = false;
  // As RegisterRequest.takeover.
  uint64_t register_takeover_ = 0;
  bool watching_ = false;

  ChiefMachine chief_;
  // One of the exclusive actions is under way.
  bool busy_ = false;
  // Nothing exclusive before this time.
  absl::Time retry_at_ = absl::InfinitePast();
  int failures_ = 0;

  // The epoch that was entered; 0: none.
  int64_t entered_epoch_ = 0;
  // The last that was; stays when a peer is lost.
  int64_t last_epoch_ = 0;
  // The incarnations of the ps tasks in it.
  std::vector<uint64_t> last_incarnations_;
  bool granted_ = false;
  // The token of the step that is granted.
  StepToken token_;
  // After a refusal: ask again when the state changes or at this time.
  int64_t refused_at_version_ = -1;
  absl::Time ask_again_at_ = absl::InfinitePast();
  // When the last question for a step was sent, and the newest state_version
  // that was known then.
  absl::Time asked_at_ = absl::InfinitePast();
  int64_t asked_version_ = -1;
  bool said_finished_before_ = false;
  // Why the job cannot go on; "" if it can.
  std::string too_few_;
  // When an idle chief says Hello again; InfiniteFuture if it is not idle.
  absl::Time greet_at_ = absl::InfiniteFuture();
  // Steps that this incarnation began.
  int64_t step_ = 0;
  // Not yet acknowledged; step 0: none.
  StepReport report_;
  // Steps of this task, over all its incarnations, in the last epoch.
  int64_t acknowledged_ = 0;
  // Acknowledged, but not known to be in the model; 0: none.
  int64_t undecided_step_ = 0;

  int64_t save_requests_seen_ = 0;
  // To be sent once more, at this time.
  std::optional<SendSaveReport> save_report_;
  absl::Time save_report_at_ = absl::InfiniteFuture();
  int signal_ = 0;
  // A signalled chief waits for nobody after this time.
  absl::Time drain_until_ = absl::InfiniteFuture();
  // Why a hook ends the job; "" if none does.
  std::string stop_reason_;
  absl::Status stop_failure_;
  // The coordinator has said that the job stops.
  bool stop_answered_ = false;
  // RunFinal was asked for as of a completed training.
  bool completed_ = false;
  bool final_done_ = false;
  absl::Status final_status_;
  // It ends although the last save could not even be tried.
  bool lacks_save_ = false;
  int finish_attempts_ = 0;
  // A chief that has finished waits for the job's end until then.
  absl::Time finish_until_ = absl::InfiniteFuture();
  // ps task 0 is a new one: it has to know who finishes.
  bool must_register_ = false;
  // Set when the end is decided; Finish leads to it.
  bool ending_ = false;
  int exit_code_ = 0;
  std::string exit_text_;
  std::string finish_reason_;
  bool finish_stops_job_ = false;

  WaitReporter waiting_;
  // For other workers, while the epoch is fine.
  WaitReporter step_waiting_;
  // For the chief's last save.
  WaitReporter end_waiting_;
};

}  // namespace muster

#endif  // WORKER_SESSION_SESSION_MACHINE_H_
