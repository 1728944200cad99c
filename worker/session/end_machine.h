#ifndef WORKER_SESSION_END_MACHINE_H_
#define WORKER_SESSION_END_MACHINE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "worker/session/job_goal.h"
#include "worker/session/session_messages.h"

namespace muster {

// Begins the reason that a job ends for, by which the others know it.
inline constexpr absl::string_view kTooFewReplicas =
    "too few replicas to go on";
bool HasTooFewReplicas(const JobState& state);

// The reason of a job that an operator ends.
inline constexpr absl::string_view kStoppedByOperator = "operator";
// The same, of a job that is not saved.
inline constexpr absl::string_view kDiscardedByOperator =
    "operator, without a save";

// Does an operator want this task to leave?
bool IsDrained(const JobState& state, const TaskId& task);

// Has this task finished, or an earlier start of it?
bool HasFinished(const JobState& state, const TaskId& task);

// May this task, the chief, still save the model at the end of the job? Not if
// it has left (unless another start of it is waited for), or is lost.
bool MaySave(const JobState& state, const TaskId& chief);

// The workers, beside `self`, that are neither lost nor finished.
std::vector<TaskId> UnfinishedOthers(const JobState& state, const TaskId& self);

// This task's way out of its job: why it leaves, how the last save went, its
// exit code and the words for it, and the Finish that tells ps task 0, repeated
// until it is heard.
//
//   OnSignal, OnStop, OnTooFew; Save --OnSaved--> Finish... --OnFinished-->
//   Exit
//                                                    ^---- RepeatFinish ----'
//
// Ending decides when, and paces what is repeated. Not thread-safe; no
// clock, no waiting.
class EndMachine {
 public:
  // As SessionMachine::Options.
  struct Options {
    TaskId self;
    bool chief = false;
    TaskId chief_task;
    JobGoal goal;
    bool saves = false;
    int64_t saved_step = -1;
    std::string finished;
    // The workers of the cluster, the chief among them; 0: whoever comes.
    int listed_workers = 0;
    // The model is in this process, and goes with it.
    bool standalone = false;
  };

  explicit EndMachine(const Options& options) : options_(options) {}

  // ---- Why ---------------------------------------------------------------
  void OnSignal(int signal, absl::Time now);
  bool is_signalled() const { return signal_ != 0; }
  // A signalled chief waits for nobody after this time.
  absl::Time drain_until() const { return drain_until_; }

  // The first one of the chief counts.
  void OnStop(const StopEvent& event);
  // This task takes no more steps.
  void OnLeave(absl::Time now) { done_at_ = std::min(done_at_, now); }
  bool is_done() const { return done_at_ != absl::InfiniteFuture(); }
  // Why this task ends the job, "" if it does not: a hook's reason, or "done"
  // of a chief that is the last who is.
  std::string StopReason(const JobState& state, absl::Time now) const;

  void OnTooFew(std::string why) { too_few_ = std::move(why); }
  // Why the job cannot go on; "" if it can.
  const std::string& too_few() const { return too_few_; }

  // ---- A job that was over before ----------------------------------------
  // This task was registered in a job of this state.
  void OnRegistered(const JobState& state);
  void OnStepBegun() { has_begun_step_ = true; }
  // The line, once, for a task that has begun no step of a finished run; "" if
  // none is due. Who comes when it is DONE says so as it ends.
  std::string SayFinishedBefore(const JobState& state);
  // An earlier start of this task has failed, and has said more.
  std::optional<Exit> ExitOfFailedJob(const JobState& state) const;
  // The way out of a job that is DONE. None: it is the chief's to save.
  std::optional<Exit> ExitOfDoneJob(const JobState& state) const;
  // How long ps tasks that cannot be reached are waited for, by a task that
  // knows of the job's end: they have left. InfiniteDuration for another.
  absl::Duration PatienceForPs(const JobState& state) const;
  // The way out after that; the line that says why.
  Exit ExitWithoutPs(const JobState& state) const;
  std::string DescribeGonePs(const JobState& state,
                             absl::string_view missing) const;
  // The line for a task that came too late; "" if none is due.
  std::string DescribeLateness(const JobState& state) const;

  // ---- The last save of the chief ----------------------------------------
  RunFinal Save(bool completed, absl::string_view stop_reason);
  // A status of a stop is of the evaluation behind a save that went well.
  void OnSaved(const absl::Status& status);
  // It was of another epoch.
  void ForgetSave();
  // Ends although it could not even be tried; returns the line for it.
  Say GiveUpSave();
  // It was tried, and has gone well or not.
  bool save_is_over() const { return save_status_.has_value(); }
  // The line of a save that failed; none if it has not.
  std::optional<Say> SayFailedSave() const;
  // The training is over, and so is its save.
  bool IsCompleted() const;
  static Exit ExitWithoutSave(absl::string_view why);

  // ---- The way out -------------------------------------------------------
  // A worker that has reported its last step finishes, but stays.
  static SendFinish Stay(const JobState& state);

  // The exit is decided; the Finish leads to it. A chief that cannot go on ends
  // the job: nobody else could start it.
  SendFinish FinishDone();
  SendFinish FinishCompleted();
  SendFinish FinishSignalled();
  SendFinish FinishFailed(Exit exit);
  Exit ExitOfSignal() const;
  bool is_leaving() const { return finish_.has_value(); }
  // The answer to a Finish. None: it is to be repeated.
  std::optional<Exit> OnFinished(const absl::StatusOr<FinishReply>& reply,
                                 absl::Time now);
  SendFinish RepeatFinish() const { return *finish_; }
  // ps task 0 is a new one: it has to know who finishes.
  bool must_register() const { return must_register_; }
  // The answer to that; `must_confirm`: a second one is wanted.
  std::optional<Exit> OnRegisteredAgain(const absl::Status& status,
                                        bool must_confirm);
  // A chief that stays until the job is DONE knows that it is.
  std::optional<Exit> ExitOfSeenEnd(const JobState& state) const;

 private:
  SendFinish Finish(absl::string_view reason, bool stop_job, Exit exit);
  Exit ExitOfCompleted() const;
  bool HasFailure() const { return !stop_failure_.ok(); }
  bool IsSaved(const JobState& state) const;
  Exit ExitTooLate(const JobState& state) const;
  std::optional<Exit> OnFinishFailed(const absl::Status& status);
  std::optional<Exit> Yield(const absl::Status& why) const;
  bool IsUnknownToNewPs(const absl::Status& status) const;
  bool IsLastAttempt();

  const Options options_;

  int signal_ = 0;
  absl::Time drain_until_ = absl::InfiniteFuture();
  std::string stop_reason_;
  absl::Status stop_failure_;
  absl::Time done_at_ = absl::InfiniteFuture();
  std::string too_few_;

  // It was registered when the job was not over yet.
  bool came_in_time_ = false;
  bool has_begun_step_ = false;
  bool said_finished_before_ = false;

  // The last save was asked for as that of a completed training.
  bool completed_ = false;
  std::optional<absl::Status> save_status_;
  // It ends although the last save could not even be tried.
  bool lacks_save_ = false;

  // Set when the end is decided.
  std::optional<SendFinish> finish_;
  Exit exit_ = {kExitDone, ""};
  int attempts_ = 0;
  // A chief that has finished waits for the job's end until then.
  absl::Time finish_until_ = absl::InfiniteFuture();
  bool must_register_ = false;
};

}  // namespace muster

#endif  // WORKER_SESSION_END_MACHINE_H_
