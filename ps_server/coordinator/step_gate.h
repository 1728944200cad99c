#ifndef PS_SERVER_COORDINATOR_STEP_GATE_H_
#define PS_SERVER_COORDINATOR_STEP_GATE_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/caller/task_name.h"
#include "ps_server/coordinator/row_leases.h"
#include "ps_server/coordinator/step_budget.h"
#include "ps_server/coordinator/step_grants.h"
#include "ps_server/coordinator/step_rounds.h"

namespace muster {

// The steps that may not begin for now, whatever the replication.
enum class StepPause {
  kNone,
  // Further global steps; who is missing in an open round may join it.
  kNewSteps,
  kAll,
};

// The reason why a worker has no step yet.
struct StepWait {
  std::vector<TaskKey> waiting_for;
  std::string why;
  bool too_few_replicas = false;

  // Names as many tasks as a line of text can.
  void AddTo(StepReply& reply) const;
  // "/job:worker/task:2 to push its gradient of step 120"; "" for no wait.
  std::string Describe() const;
};

// The gate before a step: who may take the next one now. It takes grants of the
// job's budget, and ends each as a report or returns it; with each it begins a
// lease of rows. There is one for each mode of replication:
//
//   free    who asks, while the budget lasts
//   rounds  the workers of a round, which share one step (StepRounds)
//   clocks  who is not too far ahead of the slowest (WorkerClocks)
//
// Not thread-safe; no clock inside.
class StepGate {
 public:
  // The job before it. Budget and leases outlive the gate; `live_tasks` gives
  // the tasks that take part now; `listed` are those of the cluster, in order,
  // none if it does not say.
  struct Job {
    StepBudget* budget;
    RowLeases* leases;
    std::function<std::set<TaskKey>()> live_tasks;
    std::vector<TaskKey> listed;
  };

  // The gate of asynchronous replication.
  static std::unique_ptr<StepGate> Free(const Job& job);
  // The gate of an epoch's replication; starts the budget, but not the leases.
  // `known` have come before; the others of a synchronous job are waited for
  // until `assembled_at`.
  // Errors: InvalidArgument as StepRounds, WorkerClocks and StepBudget say.
  static absl::StatusOr<std::unique_ptr<StepGate>> Create(
      const CommitEpochRequest& commit, const Job& job, std::set<TaskKey> known,
      absl::Time assembled_at);

  virtual ~StepGate() = default;

  // Notes who takes part. REQUIRED before TryEnter.
  virtual void SeeLive(absl::Time /*now*/) {}
  // Gives `task` a step if there is one for it now; whether it has one.
  virtual bool TryEnter(const TaskKey& task, StepPause pause) = 0;
  // Errors: InvalidArgument for a report of a round that was not given out.
  virtual absl::Status CheckReport(const StepRequest& report) const = 0;
  // Takes a report of a step. Returns it if it is decided already.
  virtual DecidedSteps Report(const StepRequest& report, absl::Time now) = 0;
  // Decides the steps of a round that can be closed, returns the grant of one
  // that everybody has left.
  virtual DecidedSteps TryClose(absl::Time /*now*/) { return {}; }
  // `task` goes on with its step no more. Returns whether that is a grant, or
  // rows, for another.
  virtual bool Leave(const TaskKey& task, LeaveReason reason) = 0;
  // `task`, which was lost, has the step again that it had, if that is in no
  // other hands; whether it has one. Not of a round.
  virtual bool TryResume(const TaskKey& /*task*/) { return false; }
  // The job is done: no round closes any more.
  virtual void End() {}

  // Nobody trains, and the rows that are left are fewer than a step's: those of
  // the smallest one, or of all that a round needs. Deals what nobody has begun
  // anew.
  virtual bool HasNoRowsLeft() = 0;
  // `task` has been given a step, and has not reported it; of a round, which
  // can close then, it is the last.
  virtual bool Holds(const TaskKey& /*task*/) const { return false; }
  // Nobody computes a step, though one is granted: who had it has delivered it,
  // and there are too few workers to close its round.
  virtual bool IsStuck() const { return false; }

  // The token of the step that `task` has been given.
  virtual StepToken TokenFor(const TaskKey& /*task*/) const { return {}; }
  // May an answer wait for other workers?
  virtual bool MayWait() const = 0;
  // Why `task` has no step though none is paused.
  virtual StepWait Explain(const TaskKey& task, const TaskKey& chief) const = 0;
  // Explain says the same of all tasks of which this is so.
  virtual bool WaitsAsOthers(const TaskKey& /*task*/) const { return false; }
  // When TryClose or SeeLive wants to be called at the latest.
  virtual absl::Time NextDeadline() const { return absl::InfiniteFuture(); }
  // The rounds of synchronous replication; null in other modes.
  virtual StepRounds* rounds() { return nullptr; }
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_STEP_GATE_H_
