#ifndef PS_SERVER_COORDINATOR_COORDINATOR_H_
#define PS_SERVER_COORDINATOR_COORDINATOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/call_table.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/admission.h"
#include "ps_server/coordinator/agreed_data.h"
#include "ps_server/coordinator/coordinator_options.h"
#include "ps_server/coordinator/coordinator_worker.h"
#include "ps_server/coordinator/job_end.h"
#include "ps_server/coordinator/job_record.h"
#include "ps_server/coordinator/job_saves.h"
#include "ps_server/coordinator/profiles.h"
#include "ps_server/coordinator/steering.h"
#include "ps_server/coordinator/step_scheduler.h"
#include "ps_server/coordinator/task_guard.h"
#include "ps_server/coordinator/task_numbers.h"
#include "ps_server/coordinator/watches.h"

namespace muster {

// The answer to a Watch that waited.
struct WatchAnswer {
  uint64_t watch_id = 0;
  JobState state;
};

// The cluster's memory on ps task 0: members, model epoch and chief lease,
// global step and its grants, the end. The state machine behind
// CoordinationService: no thread, clock, file or RPC inside, and a function of
// its calls alone. coordination_service.proto says what each request means and
// ps_server/README.md the rules. `now` never goes back. Not thread-safe (see
// CoordinationServer).
//
// Its parts: JobRecord has what all of them know; Admission and TaskGuard say
// who may come, StepScheduler who takes a step, JobSaves what is to be saved,
// JobEnd when it is over; Watches are those who wait for news.
//
//   request     | INITIAL        | RUNNING        | STOPPING      | DONE
//   ------------+----------------+----------------+---------------+-----------
//   AssignTask  | Unavailable, until the first commit; then the worker's index
//               | is kept for it
//   Register    | a member, if Admission and TaskGuard let it in | told so, or
//               |                |                |               | INITIAL
//   Watch       | answered when the state changes, and in time
//   BeginEpoch  | another epoch, INITIAL: of the chief           | Aborted
//   CommitEpoch | RUNNING        | repeatable, with another stop; another one
//               |                | is Aborted
//   Step        | no step        | counted; a     | counted       | counted
//               |                | step, or       |               |
//               |                | STOPPING       |               |
//   Finish      | has left; the chief may say     | has left;     | has left
//               | STOPPING                        | DONE          |
//   RequestSave | refused        | a save once no | the last save | the last
//               |                | step is out    |               | save
//   ReportSave  | noted: steps that wait for a save go on
//   PauseRounds | of the committed epoch; Aborted without
//   BeginCut    | of the committed epoch; Aborted without
//   ConfirmCut  | of the committed epoch, once after BeginCut; else Aborted
//   Steer       | refused        | told with the  | a stop is repeatable;
//               |                | state          | else refused
//   BeginProfile| refused        | told with the  | refused       | refused
//               |                | state          |               |
//   AddProfile  | kept, if it is of the newest profile; else refused
//   GetProfile  | of the newest profile, until a job that is DONE goes on
//   Tick        | loses workers; | as INITIAL,    | loses         | forgets
//               | abandoned if   | and asks for   | workers; DONE | who is not
//               | none come      | saves          |               | told
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
  static constexpr size_t kMaxWatches = Watches::kMost;

  // visit(row, method) for each call of the call table that is answered at once
  // by `method` of a Coordinator.
  template <typename Visit>
  static void VisitCalls(const Visit& visit) {
    visit(kAssignTaskCall, &Coordinator::AssignTask);
    visit(kRegisterCall, &Coordinator::Register);
    visit(kBeginEpochCall, &Coordinator::BeginEpoch);
    visit(kCommitEpochCall, &Coordinator::CommitEpoch);
    visit(kFinishCall, &Coordinator::Finish);
    visit(kRequestSaveCall, &Coordinator::RequestSave);
    visit(kReportSaveCall, &Coordinator::ReportSave);
    visit(kPauseRoundsCall, &Coordinator::PauseRounds);
    visit(kBeginCutCall, &Coordinator::BeginCut);
    visit(kConfirmCutCall, &Coordinator::ConfirmCut);
    visit(kSteerCall, &Coordinator::Steer);
    visit(kBeginProfileCall, &Coordinator::BeginProfile);
    visit(kAddProfileCall, &Coordinator::AddProfile);
    visit(kGetProfileCall, &Coordinator::GetProfile);
  }

  explicit Coordinator(CoordinatorOptions options = {});
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // The index of a worker whose cluster lists none. Repeatable.
  absl::StatusOr<AssignTaskReply> AssignTask(const AssignTaskRequest& request,
                                             absl::Time now);
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
  absl::StatusOr<BeginCutReply> BeginCut(const BeginCutRequest& request,
                                         absl::Time now);
  absl::StatusOr<ConfirmCutReply> ConfirmCut(const ConfirmCutRequest& request,
                                             absl::Time now);
  absl::StatusOr<SteerReply> Steer(const SteerRequest& request, absl::Time now);
  absl::StatusOr<BeginProfileReply> BeginProfile(
      const BeginProfileRequest& request, absl::Time now);
  absl::StatusOr<AddProfileReply> AddProfile(const AddProfileRequest& request,
                                             absl::Time now);
  absl::StatusOr<GetProfileReply> GetProfile(const GetProfileRequest& request,
                                             absl::Time /*now*/) const {
    return profiles_.Get(request);
  }

  // A program that is no member called a shard at that time: it trains, too.
  void HearOfOthers(absl::Time when) { end_.HearOfOthers(when); }

  // Lets time pass: workers get lost.
  void Tick(absl::Time now);

  // Watches that are answered now, in the order in which they came.
  std::vector<WatchAnswer> TakeAnswers(absl::Time now);
  // Answers a Watch with the present state in the next TakeAnswers.
  void CutWatch(uint64_t watch_id) { watches_.Cut(watch_id); }
  // Steps that are answered now, in the order in which they came.
  std::vector<StepAnswer> TakeStepAnswers(absl::Time now) {
    return steps_.PopAnswers(now);
  }
  // Answers every Step that waits in the next TakeStepAnswers.
  void CutSteps() { steps_.Cut(); }
  // The news for the operator since the last call, a line each: a worker was
  // lost, came back, was replaced.
  std::vector<std::string> TakeLines() { return job_.ReleaseLines(); }
  // The same, of what may be a mistake.
  std::vector<std::string> TakeWarnings() { return data_.TakeWarnings(); }
  // When the next watch ends or the next worker gets lost; InfiniteFuture if
  // nothing can.
  absl::Time NextDeadline() const;

  JobState State() const;
  // The same for an operator, with what depends on the time.
  JobState StateForOperator(absl::Time now) const;
  // Those of the state's workers, in their order.
  std::vector<CoordinatorWorker::Totals> TotalsOfWorkers() const;
  // Watches of the whole job that know an older version are answered.
  int64_t told_version() const { return job_.versions().told(); }
  // The incarnations of the tasks that have registered.
  std::vector<uint64_t> Incarnations() const;
  // The tasks that train, or wait to.
  std::vector<TaskKey> ActiveTasks() const;
  JobPhase phase() const { return job_.phase(); }
  // The job is done, and every ps task that watches it has been told.
  bool EndIsKnown() const {
    return phase() == DONE && end_.listeners().all_know();
  }
  // No task is here, and none has ever had a model.
  bool IsVoid() const {
    return phase() != RUNNING && job_.epoch().committed() == 0 &&
           !job_.members().IsAnyWaitedFor();
  }
  // As JobState.abandoned.
  const std::string& abandoned() const { return end_.abandoned(); }
  // The ps tasks that do not know the end of the job; "" for none.
  std::string DescribeUntold() const { return end_.listeners().Describe(); }
  int64_t state_version() const { return job_.version(); }
  int64_t global_step() const { return job_.budget().steps(); }
  int64_t outstanding_grants() const { return job_.budget().outstanding(); }

 private:
  // ---- Members -------------------------------------------------------------
  // The worker that sent a message, marked as heard.
  absl::StatusOr<CoordinatorWorker*> FindSender(absl::string_view request,
                                                const Sender& sender,
                                                absl::Time now);
  absl::Status CheckLease(absl::string_view request, const Sender& sender,
                          absl::Time now);
  void Hear(CoordinatorWorker& worker, absl::Time now);
  // It has come, gone, or is back.
  void TellOf(const CoordinatorWorker& worker, absl::Time now);
  // Is that caller told of all members? A worker is of itself and the chief.
  bool WatchesAll(const TaskKey& asker) const;
  // The state as the caller is told it.
  JobState StateFor(const TaskKey& asker) const;
  // The state without the members.
  JobState StateOfJob() const;
  void AddTo(JobState& state, const CoordinatorWorker& worker) const;
  // The sender's record, which makes it a member.
  CoordinatorWorker& AdmitSender(const Sender& sender, absl::Time now);
  void ExpelAllBut(const TaskKey& key, absl::Time now);
  absl::Status CheckWatched(const WatchRequest& request) const;

  // ---- The epoch -----------------------------------------------------------
  // Starts the steps of a commit.
  absl::Status StartSteps(const CommitEpochRequest& commit, absl::Time now);
  // Makes a job that is DONE INITIAL again, without members.
  void Reopen();
  // Commits the epoch that a reopened job has, with the counts that it has.
  absl::StatusOr<CommitEpochReply> Resume(const CommitEpochRequest& request,
                                          absl::Time now);

  // Raises a save that is due, ends a pause that is over.
  void CheckSave(absl::Time now) {
    if (phase() == RUNNING) saves_.Advance(steps_.OthersUnderWay(), now);
  }

  JobRecord job_;
  Admission admission_;
  AgreedData data_;
  TaskGuard guard_;
  TaskNumbers numbers_;
  JobSaves saves_;
  StepScheduler steps_;
  JobEnd end_;
  Watches watches_;
  Steering steering_;
  Profiles profiles_{job_};
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_COORDINATOR_H_
