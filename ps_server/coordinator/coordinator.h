#ifndef PS_SERVER_COORDINATOR_COORDINATOR_H_
#define PS_SERVER_COORDINATOR_COORDINATOR_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/call_table.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/admission.h"
#include "ps_server/coordinator/agreed_data.h"
#include "ps_server/coordinator/attendance.h"
#include "ps_server/coordinator/coordinator_worker.h"
#include "ps_server/coordinator/end_listeners.h"
#include "ps_server/coordinator/members.h"
#include "ps_server/coordinator/model_epoch.h"
#include "ps_server/coordinator/request_checks.h"
#include "ps_server/coordinator/save_requests.h"
#include "ps_server/coordinator/step_budget.h"
#include "ps_server/coordinator/step_gate.h"
#include "ps_server/coordinator/takeover_questions.h"
#include "ps_server/coordinator/unreported_steps.h"
#include "ps_server/coordinator/unsaved_steps.h"

namespace muster {

struct CoordinatorOptions {
  // A worker that was not heard of for so long is lost: its grant returns, and
  // nobody waits for it. Its next message brings it back. The same goes for a
  // ps task that is to be told that the job is done.
  absl::Duration worker_timeout = absl::Seconds(30);
  // The longest that a Watch or Step waits, whatever it asks for.
  absl::Duration max_watch = absl::Seconds(30);
  // How long the end of a job waits for a chief that is lost, and has the last
  // save still to make; then the job ends without it (JobState.unsaved).
  absl::Duration max_wait = absl::Hours(2);
  // The ps tasks end if nobody trains on them for max_wait
  // (JobState.abandoned).
  bool ends_without_workers = false;
  // Tasks that train, by the ClusterSpec. While fewer have come, a job whose
  // tasks have all finished waits so long for the others before it is DONE: a
  // worker that comes late to a short job is told that all is done instead of
  // waiting for a ps that has left.
  int expected_tasks = 0;
  absl::Duration latecomer_wait = absl::Milliseconds(2500);
  // The cluster as this ps knows it; empty for --standalone.
  ClusterDef cluster;
  // How many tasks may register beside those of the cluster: as many as a
  // cluster can have, since it need not list the workers.
  size_t max_unlisted_tasks = 4096;
  // The ps tasks keep serving: a job that is DONE may go on
  // (RegisterRequest.goes_on).
  bool may_go_on = false;
  // Nobody replaces a task that is there and alive: two jobs may have been
  // given one namespace.
  bool guards_tasks = false;
};

// The answer to a Watch that waited.
struct WatchAnswer {
  uint64_t watch_id = 0;
  JobState state;
};

// The answer to a Step.
struct StepAnswer {
  uint64_t step_id = 0;
  StepReply reply;
};

// The cluster's memory on ps task 0: members, model epoch and chief lease,
// global step and its grants, the end. The state machine behind
// CoordinationService: no thread, clock, file or RPC inside, and a function of
// its calls alone. coordination_service.proto says what each request means and
// ps_server/README.md the rules. `now` never goes back. Not thread-safe (see
// CoordinationServer).
//
// A Watch or a Step may have to wait: after each call, TakeAnswers and
// TakeStepAnswers give those that need not wait longer, and NextDeadline when
// to call Tick at the latest.
//
// Errors: FailedPrecondition with "fenced: " from an incarnation that was
// replaced, without it from one that is not registered (this ps may have been
// restarted: register again); InvalidArgument; ResourceExhausted beyond the
// limits below; Aborted as the messages say.
class Coordinator {
 public:
  // One a task, and as many whose callers have asked again.
  static constexpr size_t kMaxWatches = 2 * Members::kMaxTasks;
  // Between two calls of TakeLines.
  static constexpr size_t kMaxLines = 1024;

  // visit(row, method) for each call of the call table that is answered at once
  // by `method` of a Coordinator.
  template <typename Visit>
  static void VisitCalls(const Visit& visit) {
    visit(kRegisterCall, &Coordinator::Register);
    visit(kBeginEpochCall, &Coordinator::BeginEpoch);
    visit(kCommitEpochCall, &Coordinator::CommitEpoch);
    visit(kFinishCall, &Coordinator::Finish);
    visit(kRequestSaveCall, &Coordinator::RequestSave);
    visit(kReportSaveCall, &Coordinator::ReportSave);
    visit(kPauseRoundsCall, &Coordinator::PauseRounds);
    visit(kConfirmCutCall, &Coordinator::ConfirmCut);
  }

  explicit Coordinator(CoordinatorOptions options = {});
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  absl::StatusOr<RegisterReply> Register(const RegisterRequest& request,
                                         absl::Time now);
  // OK: TakeAnswers gives the answer, at once or later. `watch_id` is the
  // caller's and not in use.
  absl::Status Watch(const WatchRequest& request, uint64_t watch_id,
                     absl::Time now);
  absl::StatusOr<BeginEpochReply> BeginEpoch(const BeginEpochRequest& request,
                                             absl::Time now);
  absl::StatusOr<CommitEpochReply> CommitEpoch(
      const CommitEpochRequest& request, absl::Time now);
  // OK: TakeStepAnswers gives the answer, at once or later. `step_id` is the
  // caller's and not in use. A worker has one Step that waits: another one
  // answers it.
  absl::Status Step(const StepRequest& request, uint64_t step_id,
                    absl::Time now);
  absl::StatusOr<FinishReply> Finish(const FinishRequest& request,
                                     absl::Time now);
  absl::StatusOr<RequestSaveReply> RequestSave(
      const RequestSaveRequest& request, absl::Time now);
  absl::StatusOr<ReportSaveReply> ReportSave(const ReportSaveRequest& request,
                                             absl::Time now);
  absl::StatusOr<PauseRoundsReply> PauseRounds(
      const PauseRoundsRequest& request, absl::Time now);
  absl::StatusOr<ConfirmCutReply> ConfirmCut(const ConfirmCutRequest& request,
                                             absl::Time now);

  // A program that is no member called a shard at that time: it trains, too.
  void HearOfOthers(absl::Time when) {
    others_heard_ = std::max(others_heard_, when);
  }

  // Lets time pass: workers get lost.
  void Tick(absl::Time now);

  // Watches that are answered now, in the order in which they came.
  std::vector<WatchAnswer> TakeAnswers(absl::Time now);
  // Answers a Watch with the present state in the next TakeAnswers.
  void CutWatch(uint64_t watch_id);
  // Steps that are answered now, in the order in which they came.
  std::vector<StepAnswer> TakeStepAnswers(absl::Time now);
  // Answers every Step that waits in the next TakeStepAnswers.
  void CutSteps();
  // The news for the operator since the last call, a line each: a worker was
  // lost, came back, was replaced.
  std::vector<std::string> TakeLines();
  // The same, of what may be a mistake.
  std::vector<std::string> TakeWarnings() { return data_.TakeWarnings(); }
  // When the next watch ends or the next worker gets lost; InfiniteFuture if
  // nothing can.
  absl::Time NextDeadline() const;

  JobState State() const;
  // The incarnations of the tasks that have registered.
  std::vector<uint64_t> Incarnations() const;
  // The tasks that train, or wait to.
  std::vector<TaskKey> ActiveTasks() const;
  // When a task was heard of last; InfinitePast if none ever was.
  absl::Time last_word() const { return members_.LastWord(); }
  JobPhase phase() const { return phase_; }
  // The job is done, and every ps task that watches it has been told.
  bool EndIsKnown() const { return phase_ == DONE && listeners_.all_know(); }
  // No task is here, and none has ever had a model.
  bool IsVoid() const {
    return phase_ != RUNNING && epoch_.committed() == 0 &&
           !members_.IsAnyWaitedFor();
  }
  // As JobState.abandoned.
  const std::string& abandoned() const { return abandoned_; }
  // The ps tasks that do not know the end of the job; "" for none.
  std::string DescribeUntold() const { return listeners_.Describe(); }
  int64_t state_version() const { return state_version_; }
  int64_t global_step() const { return budget_.steps(); }
  int64_t outstanding_grants() const { return budget_.outstanding(); }

 private:
  StepGate::Job GatedJob();

  struct WaitingWatch {
    uint64_t watch_id;
    int64_t state_version;
    absl::Time until;
  };
  struct WaitingStep {
    uint64_t step_id;
    TaskKey task;
    int64_t state_version;
    absl::Time until;
  };

  // The worker that sent a message, marked as heard.
  absl::StatusOr<CoordinatorWorker*> FindSender(absl::string_view request,
                                                const Sender& sender,
                                                absl::Time now);
  void Hear(CoordinatorWorker& worker, absl::Time now);
  // A line for TakeLines.
  void Say(std::string line);
  absl::Status CheckWatched(const WatchRequest& request) const;
  // The sender's record, which makes it a member.
  CoordinatorWorker& AdmitSender(const Sender& sender, absl::Time now);
  void ExpelAllBut(const TaskKey& key, absl::Time now);
  // Ends all that the worker's process has under way.
  void Withdraw(CoordinatorWorker& worker, absl::Time now);
  // Errors: InvalidArgument if another start of the sender's task is there, and
  // alive or with another training; Unavailable until that is known.
  absl::Status CheckGuarded(const RegisterRequest& request, absl::Time now);
  absl::Status CheckReplaceable(const CoordinatorWorker& holder, uint64_t asker,
                                absl::Time now);
  // Makes a job that is DONE INITIAL again, without members.
  void Reopen();
  // Commits the epoch that a reopened job has, with the counts that it has.
  absl::StatusOr<CommitEpochReply> Resume(const CommitEpochRequest& request,
                                          absl::Time now);
  // Starts the steps of a commit.
  absl::Status StartSteps(const CommitEpochRequest& commit, absl::Time now);

  // The holder of the chief lease, if it is alive; else null.
  const CoordinatorWorker* LiveChief() const;

  // ---- Saves, and a chief that is lost -------------------------------------
  // Would further steps be lost, with nobody there to save them, or a save that
  // does not end?
  bool NeedsChief(absl::Time now) const;
  // Begins or ends the pause of grants until the chief is back.
  void CheckPause(absl::Time now);
  // The chief that would make the last save does not come back.
  bool GivesUpLastSave(absl::Time now);
  // When it gives up; InfiniteFuture while there is a chief.
  absl::Time LastSaveDeadline() const;
  // When nobody has trained for too long; InfiniteFuture while there are
  // workers, and where the end of the job has its own limits.
  absl::Time AbsenceDeadline() const;
  void Abandon();
  absl::Status CheckLease(absl::string_view request, const Sender& sender,
                          absl::Time now);

  // ---- Steps ---------------------------------------------------------------
  // Says who is missing or has come late, and in sync what an update has.
  void SayAttendance(absl::Time now);
  // Closes the round that can be closed.
  void CheckRounds(absl::Time now);
  void Count(const DecidedSteps& steps, absl::Time now);
  StepPause PauseOfSteps() const;
  // Gives the task a step if there is one for it now; whether it has one.
  bool TryGrantTo(const TaskKey& task, absl::Time now);
  StepReply MakeStepReply(const CoordinatorWorker& worker, bool granted) const;
  // Why the task has no grant.
  StepWait ExplainWait(const TaskKey& task) const;
  // Answers the worker's Step that waits without a grant.
  void AnswerOlderStep(const TaskKey& task);

  // Answers a step, or lets it wait for its grant. `asks`: for another one.
  void Answer(CoordinatorWorker& worker, const StepRequest& request,
              uint64_t step_id, bool asks, absl::Time now);
  // The worker reports nothing more on its grant. The step is counted all the
  // same if a checkpoint counts it.
  void ReturnGrant(CoordinatorWorker& worker, absl::Time now);
  // The step of a cut is counted, or will be.
  bool WillCount(const CoordinatorWorker& worker, const HeldStep& held);

  void SetPhase(JobPhase phase);
  void Stop(std::string reason);
  // STOPPING when the limit is reached, DONE when nobody is left.
  void CheckEnd(absl::Time now);
  void End(absl::Time now);
  bool EverybodyCame() const;
  // Why a ps need not wait for a save; "" if it should.
  std::string WhyNoSave(const Sender& ps) const;
  // Raises a save that is due, ends a pause that is over.
  void CheckSave(absl::Time now);

  const CoordinatorOptions options_;

  int64_t state_version_ = 1;
  JobPhase phase_ = INITIAL;
  std::string stop_reason_;

  Members members_;
  Admission admission_;
  AgreedData data_;
  TakeoverQuestions questions_;
  // The chief lease; incarnation 0 if nobody has it.
  Sender chief_;
  ModelEpoch epoch_;
  StopSpec stop_;
  StepBudget budget_;
  SaveRequests saves_;
  UnsavedSteps unsaved_;
  UnreportedSteps unreported_;
  // No step is granted until the chief is back.
  bool needs_chief_ = false;
  // The time since which the last save waits for a chief that is gone;
  // InfiniteFuture if it does not.
  absl::Time chief_gone_since_ = absl::InfiniteFuture();
  EndListeners listeners_;
  // The last word of a caller that is no member; at first, of the start.
  absl::Time others_heard_ = absl::InfinitePast();
  std::string abandoned_;
  // The time since which the job is STOPPING without a live task;
  // InfiniteFuture if it is not.
  absl::Time idle_since_ = absl::InfiniteFuture();

  Attendance attendance_;
  // The gate of the committed epoch; a free one while none is.
  std::unique_ptr<StepGate> gate_;

  std::vector<WaitingWatch> watches_;
  std::vector<WaitingStep> waiting_steps_;
  std::vector<StepAnswer> step_answers_;
  // At most kMaxLines: those beyond are not kept.
  std::vector<std::string> lines_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_COORDINATOR_H_
