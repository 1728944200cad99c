#ifndef PS_SERVER_COORDINATOR_STEP_SCHEDULER_H_
#define PS_SERVER_COORDINATOR_STEP_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/attendance.h"
#include "ps_server/coordinator/coordinator_worker.h"
#include "ps_server/coordinator/cut_log.h"
#include "ps_server/coordinator/job_record.h"
#include "ps_server/coordinator/job_saves.h"
#include "ps_server/coordinator/row_leases.h"
#include "ps_server/coordinator/step_gate.h"
#include "ps_server/coordinator/unreported_steps.h"

namespace muster {

// The answer to a Step.
struct StepAnswer {
  uint64_t step_id = 0;
  StepReply reply;
};

// The steps of a job: takes the workers' reports, counts what is decided, and
// answers the questions for the next step, at once or when the gate lets the
// worker in. Not thread-safe.
class StepScheduler {
 public:
  // Both outlive it.
  StepScheduler(JobRecord& job, JobSaves& saves);

  // ---- The job's phases ----------------------------------------------------
  // Starts the steps of a commit.
  absl::Status Start(const CommitEpochRequest& commit, absl::Time now);
  // No epoch is committed: everybody may enter.
  void Clear();
  // The epoch is over, and what was granted in it.
  void ForgetUnreported();
  void End() { gate_->End(); }
  // The workers' rows, too, of those that the state has.
  void AddTo(JobState& state) const;
  // What each Step that waits is waiting for, in words, by its task.
  std::map<TaskKey, std::string> DescribeWaits() const;
  // The limit that ends the job, which nobody trains for any more: "steps",
  // "epochs", or "".
  std::string ReachedLimit();

  // ---- Workers -------------------------------------------------------------
  // The worker's report, if it is one that is not known.
  absl::Status Report(CoordinatorWorker& worker, const StepRequest& request,
                      absl::Time now);
  // Answers a step, or lets it wait for its grant. `asks`: for another one.
  void Answer(CoordinatorWorker& worker, const StepRequest& request,
              uint64_t step_id, bool asks, absl::Time now);
  // Answers the task's Step that waits without a grant.
  void AnswerOlder(const TaskKey& task);
  // The worker reports nothing more on its grant. The step is counted all the
  // same if a checkpoint counts it.
  void ReturnGrant(CoordinatorWorker& worker, LeaveReason reason,
                   absl::Time now);
  // Ends all that the worker's process has under way.
  void Withdraw(CoordinatorWorker& worker, absl::Time now);

  // ---- Time ----------------------------------------------------------------
  void Tick(absl::Time now);
  // Closes the round that can be closed.
  void CheckRounds(absl::Time now) { Count(gate_->TryClose(now), now); }
  // The steps under way, but the chief's, that a save waits for.
  int64_t OthersUnderWay() const;
  absl::Time NextDeadline() const;
  std::vector<StepAnswer> PopAnswers(absl::Time now);
  // Answers every Step that waits in the next PopAnswers.
  void Cut();

  // ---- Snapshots -----------------------------------------------------------
  // Errors: FailedPrecondition without rounds.
  absl::Status PauseRounds(const PauseRoundsRequest& request, absl::Time now);
  // REQUIRES: there are rounds.
  StepToken round_token() const { return gate_->rounds()->token(); }
  // Remembers the rows of what is counted from now on, and holds the steps if
  // the chief wants it. Errors: FailedPrecondition with rounds.
  absl::Status BeginCut(const BeginCutRequest& request, absl::Time now);
  // Errors: FailedPrecondition with rounds; Aborted if no cut has begun.
  absl::StatusOr<ConfirmCutReply> ConfirmCut(const ConfirmCutRequest& request);

 private:
  struct Waiting {
    uint64_t step_id;
    TaskKey task;
    LeaseWish wish;
    int64_t state_version;
    absl::Time until;
  };

  StepGate::Job GatedJob();
  void StartRows(const CommitEpochRequest& commit);
  void Count(const DecidedSteps& steps, absl::Time now);
  // Says who is missing or has come late, and in sync what an update has.
  void SayAttendance(absl::Time now);
  // Gives the task a step if there is one for it now; whether it has one.
  bool TryGrantTo(const TaskKey& task, const LeaseWish& wish, absl::Time now);
  StepReply MakeReply(const CoordinatorWorker& worker, bool granted);
  // The factor of the learning rate of a step that is granted with `token`.
  double RateFactorOf(const StepToken& token);
  // Why the task has no grant.
  StepWait ExplainWait(const TaskKey& task) const;
  void AddLeases(const TaskKey& task, StepReply& reply) const;
  absl::Status CheckHasNoRounds(absl::string_view what,
                                const Sender& sender) const;
  // Counts the rows of steps that some cut has, and that the cut of all has
  // not, as repeated in `reply`.
  void CountRepeated(const ConfirmCutRequest& request,
                     const std::set<TaskKey>& unreported,
                     ConfirmCutReply& reply) const;
  // Of a step that some cut has a part of, unless it was reported.
  int64_t UnreportedRowsOf(const HeldStep& begun) const;
  ConfirmCutReply CountHeld(const ConfirmCutRequest& request);
  // The step of a cut is counted, or will be.
  bool WillCount(const CoordinatorWorker& worker, const HeldStep& held);

  JobRecord& job_;
  JobSaves& saves_;

  Attendance attendance_;
  // The gate of the committed epoch; a free one while none is.
  std::unique_ptr<StepGate> gate_;
  UnreportedSteps unreported_;
  // The newest one's chief, by incarnation, and number.
  std::pair<uint64_t, int64_t> newest_cut_;
  CutLog cut_;
  // The last cut's, since its answer may be lost.
  std::string confirmed_request_;
  ConfirmCutReply confirmed_;
  std::vector<Waiting> waiting_;
  std::vector<StepAnswer> answers_;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEP_SCHEDULER_H_
