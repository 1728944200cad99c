// The events that happen to a session, and the actions that it then takes.
// SessionMachine turns the first into the second; TrainingSession carries the
// second out.
#ifndef WORKER_SESSION_SESSION_MESSAGES_H_
#define WORKER_SESSION_SESSION_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "proto/coordination_service.pb.h"
#include "proto/evaluation_history.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "worker/tower/computed_step.h"

namespace muster {

// Not the end that was wanted: neither done nor stopped by a signal.
inline bool IsFailure(int exit_code) {
  return exit_code == kExitRetryable ||
         (exit_code != kExitDone && exit_code < 128);
}

// The chief's model is on the shards, not yet committed.
struct LoadedModel {
  int64_t global_step = 0;
  int64_t examples = 0;
  // Not restored: there is no checkpoint of it yet.
  bool initialized = false;
  // From the manifest; empty after an initialization.
  std::vector<WorkerState> workers;
  // As CommitEpochRequest's; none after an initialization.
  std::optional<RowLedger> ledger;
  std::string reached;
  EvaluationHistory evaluations;
};

// One step's report to the coordinator.
struct StepReport {
  int64_t step = 0;
  int64_t examples = 0;
  // Right answers, -1: not known; the coordinator does not want them, hooks do.
  int64_t correct = 0;
  // The rows that it was computed from.
  RowLease rows;
  // Of a stream: the newest pass that was begun; none: no stream.
  std::optional<StreamPass> pass;
  double loss = 0;
  // As ComputedStep's.
  bool has_loss = true;
  int64_t staleness = 0;
  // The round of the step's token; 0: the mode has none.
  int64_t round = 0;
  // The gradient came too late for its round, and was dropped.
  bool late = false;
  // For hooks.
  StepTimes times;
  // Nothing, or not all, was pushed: it counts for nothing.
  bool abandoned = false;
  // Abandoned, and its rows are passed over: they are not dealt again.
  bool skipped = false;
};

// What ps task 0 gives for a step.
struct StepGrant {
  // Without a round in a mode that has none.
  StepToken token;
  // As StepReply's: the rows of the step, then those of the steps after it.
  std::vector<RowLease> leases;
  // As StepReply's.
  StreamPass pass;
};

// ---- Events -------------------------------------------------------------

struct HelloEvent {
  int ps_task;
  absl::StatusOr<HelloReply> reply;
};
struct RegisterEvent {
  absl::StatusOr<RegisterReply> reply;
};
// An OK Watch goes on by itself; after an error it has stopped.
struct WatchEvent {
  absl::StatusOr<JobState> state;
};
struct BeginEpochEvent {
  absl::StatusOr<BeginEpochReply> reply;
};
// IsStopped: a signal came.
struct LoadEvent {
  absl::StatusOr<LoadedModel> model;
  // The checkpoint, not a peer, is why it failed.
  bool checkpoint_unusable = false;
};
struct CommitEvent {
  absl::StatusOr<CommitEpochReply> reply;
};
// The answer to SendStep.
struct StepEvent {
  absl::StatusOr<StepReply> reply;
};
// Pull, compute and push are done. Aborted: fenced; Unavailable or
// DeadlineExceeded: a ps is gone; IsStopped: given up for a signal; anything
// else is fatal.
struct TrainEvent {
  absl::StatusOr<StepReport> report;
  // As StepRunner's.
  bool may_resume = false;
};
// The final save and evaluation are done. IsStopped: only the save is.
struct FinalEvent {
  absl::Status status;
};
struct FinishEvent {
  absl::StatusOr<FinishReply> reply;
};
// The report of a save was tried for the `attempt`th time, and lost.
struct SaveReportLostEvent {
  int64_t save_request;
  std::string error;
  int attempt;
};
struct SignalEvent {
  int signal;
};
// A hook ends the job: `reason` is what result.json says. Not OK: the exit code
// tells of a failure, and its message why. Only the chief can.
struct StopEvent {
  std::string reason;
  absl::Status failure;
};
// This task is done: it takes no more steps, and the others go on.
struct LeaveEvent {};
// Time has passed; see SessionMachine::next_wakeup.
struct TickEvent {};

using SessionEvent =
    std::variant<HelloEvent, RegisterEvent, WatchEvent, BeginEpochEvent,
                 LoadEvent, CommitEvent, StepEvent, TrainEvent, FinalEvent,
                 FinishEvent, SaveReportLostEvent, SignalEvent, StopEvent,
                 LeaveEvent, TickEvent>;

// ---- Actions; each Send... is answered by its event ---------------------

struct SendHello {
  int ps_task;
  // As HelloRequest.takeover.
  uint64_t takeover = 0;
};
struct SendRegister {
  // As RegisterRequest's.
  uint64_t takeover = 0;
  bool goes_on = false;
  bool asks_only = false;
};
// Starts watching from this version on.
struct SendWatch {
  int64_t state_version;
};
struct SendBeginEpoch {
  int64_t seen_epoch;
};
// Restore the newest checkpoint, or initialize, and seal every shard.
struct LoadModel {
  int64_t model_epoch;
  // By ps task.
  std::vector<uint64_t> ps_incarnations;
};
struct SendCommit {
  int64_t model_epoch;
  LoadedModel model;
  std::vector<uint64_t> ps_incarnations;
  // As CommitEpochRequest's; the model is the one that is there.
  bool resumes = false;
};
// The epoch is usable: set the fences. No event.
struct EnterEpoch {
  int64_t model_epoch;
  std::vector<uint64_t> ps_incarnations;
  // It is not the one before: what was computed or given for that is gone.
  bool is_new = true;
};
// Report (if report.step > 0) and ask for a step; or for the end of the job, if
// there is a reason.
struct SendStep {
  int64_t model_epoch;
  // The incarnation of ps task 0 in that epoch.
  uint64_t ps_incarnation;
  StepReport report;
  std::string stop_reason;
  // How long the answer may wait for other workers.
  absl::Duration max_wait;
  // As StepRequest's.
  bool is_done = false;
};
struct TrainStep {
  int64_t step;
  StepGrant grant;
};
// The rest of the newest step, whose push has failed. Answered as TrainStep.
struct ResumeStep {};
// A ps asked for a save (it is about to stop): save and report. No event.
struct SaveNow {
  int64_t save_request;
};
// Once more; may be answered by SaveReportLostEvent.
struct SendSaveReport {
  int64_t save_request;
  std::string error;
  int attempt;
};
// Chief: final save; evaluation and result.json only if `completed`. Each is
// tried even if the one before it failed. Nothing is saved if a hook has ended
// the job for a failure, or an operator discards its end.
struct RunFinal {
  bool completed;
  std::string stop_reason;
  bool failed = false;
  bool is_discarded = false;
};
struct SendFinish {
  std::string reason;
  bool stop_job;
  // As FinishRequest's.
  bool unsaved = false;
  bool stays = false;
  int64_t model_epoch = 0;
  uint64_t ps_incarnation = 0;
};
// For the log. No event.
struct Say {
  std::string text;
  bool is_error = false;
};
// The end. `text` says why if `code` is not 0. `without_ps`: the job is over,
// though no ps task has said so now. `is_replaced`: another start has this
// task.
struct Exit {
  int code;
  std::string text;
  bool without_ps = false;
  bool is_replaced = false;
};

inline Exit ExitOfReplaced(std::string text) {
  return {kExitFailed, std::move(text), /*without_ps=*/false,
          /*is_replaced=*/true};
}

using SessionAction =
    std::variant<SendHello, SendRegister, SendWatch, SendBeginEpoch, LoadModel,
                 SendCommit, EnterEpoch, SendStep, TrainStep, ResumeStep,
                 SaveNow, SendSaveReport, RunFinal, SendFinish, Say, Exit>;

}  // namespace muster

#endif  // WORKER_SESSION_SESSION_MESSAGES_H_
