#ifndef WORKER_SESSION_TRAINING_SESSION_H_
#define WORKER_SESSION_TRAINING_SESSION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/rpc/link.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"
#include "proto/evaluation_history.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/hook.h"
#include "worker/session/event_queue.h"
#include "worker/session/session_machine.h"
#include "worker/session/session_messages.h"
#include "worker/session/state_watch.h"
#include "worker/session/step_runner.h"
#include "worker/tower/computed_step.h"

namespace muster {

// One process's part in a training run: carries out SessionMachine's actions.
// Run is called once, on the thread that computes; RequestStop and Leave from
// any thread.
class TrainingSession {
 public:
  struct Options {
    SessionMachine::Options machine;
    Sender sender;
    // Own ClusterSpec address; "" if none.
    std::string sender_address;
    // Addresses of the ps job by task index; empty in this process.
    std::map<int, std::string> ps_addresses;
    // Hash and text of the TrainingSpec's semantic fields.
    uint64_t training_fingerprint = 0;
    std::string training_text;
    // As RegisterRequest's.
    bool is_numbered = false;
    // What this worker's data are (MakeDataSections).
    std::vector<DataSection> data;
    StopSpec stop;
    // As the shards are told in Define.
    ReplicationSpec replication;
    // The chief: does it save, and how often?
    bool saves = false;
    CheckpointSpec checkpoint;
    // Rows of one epoch.
    int64_t epoch_examples = 0;
    // Rows of one step of this worker.
    int64_t step_rows = 0;
    // Good rows are in the places of bad ones.
    bool skips_bad_records = false;
    // Steps whose rows are leased before the step before them is made, so that
    // they can be prepared.
    int leases_ahead = 1;
  };
  // The parts that it works with; all outlive it.
  struct Parts {
    const Clock* clock = nullptr;
    // One Hello to a ps task, not repeated (ParameterClient::Hello).
    std::function<void(int ps_task, const HelloRequest& request,
                       ReplyCallback<HelloReply> done)>
        hello;
    Link* coordination = nullptr;
    StepRunner* steps = nullptr;
    // Null if this is not the chief.
    ModelSource* source = nullptr;
    // In the order in which they are called.
    std::vector<Hook*> hooks;
    // A line for the operator.
    Reporter reporter;
    // The fences of the epoch, for who saves.
    std::function<void(const EnterEpoch&)> on_enter;
    // The chief saves now; `done` may be called from any thread.
    std::function<void(std::function<void(const absl::Status&)> done)> save_now;
    // Returns when no save is being written. Null if this task does not save.
    std::function<void()> wait_for_saves;
    // Called on the first step, whenever training stops for a lost peer, when
    // it ends, and from the thread of RequestStop.
    std::function<void(bool serving)> set_serving;
    // The chief's last act of a completed run, after the hooks, even if one
    // of them failed: result.json.
    std::function<absl::Status(const EndRecord&)> write_result;
    // The chief's, for each question for a step; null if none are watched.
    std::function<EvaluationHistory()> evaluations;
    // For Finish.
    std::function<Traffic()> traffic = [] { return Traffic(); };
  };

  TrainingSession(const Options& options, Parts parts);
  ~TrainingSession();

  // Trains; returns the exit code, having said why if it is not 0.
  int Run();

  // Finish the step, leave; the chief ends the job and saves.
  void RequestStop(int signal);

  // This task is done: finish the step, take no other, leave with 0, the others
  // go on; the chief stays until they are done, too, ends the job for the
  // reason "done" and saves. From any thread; before what stops a step for it.
  void Leave() { queue_->Push(LeaveEvent()); }

  // No signal has come. From any thread.
  bool goes_on() const { return !draining_; }

  // For a hook that works for long, on the thread that calls Run, from time to
  // time: hears of the job's state meanwhile. False: a signal has come, or a ps
  // that ends waits for a save, which the hook holds up.
  bool MayGoOn();

  // For hooks, on the thread that calls Run: see RequestStop in hook.h.
  void StopJob(absl::string_view reason, const absl::Status& failure);

  // ---- For result.json; of the thread that calls Run -------------------
  const JobState& job_state() const { return machine_.job_state(); }
  // As Exit's.
  const std::string& exit_text() const { return exit_text_; }
  bool left_without_ps() const { return left_without_ps_; }
  bool was_replaced() const { return was_replaced_; }
  int64_t global_step() const { return global_step_; }
  // NaN: it has made no step.
  double last_loss() const { return last_loss_; }
  int64_t first_global_step() const { return first_global_step_; }
  // The examples of all workers, when this process began to train.
  int64_t first_examples() const { return first_examples_; }
  // InfinitePast until then.
  absl::Time first_step_time() const { return first_step_time_; }
  absl::Time entered_time() const { return entered_time_; }
  // When the last step was counted.
  absl::Time stopped_time() const { return stopped_time_; }

 private:
  void Do(const SendHello& action);
  void Do(const SendRegister& action);
  void Do(const SendWatch& action);
  void Do(const SendBeginEpoch& action);
  void Do(const LoadModel& action);
  void Do(const SendCommit& action);
  void Do(const EnterEpoch& action);
  void Do(const SendStep& action);
  void Do(const TrainStep& action);
  void Do(const ResumeStep& action);
  void Do(const SaveNow& action);
  void Do(const SendSaveReport& action);
  void Do(const RunFinal& action);
  void Do(const SendFinish& action);
  void Do(const Say& action);
  void Do(const Exit& action);

  void OnTrained(absl::StatusOr<StepReport> report);
  absl::StatusOr<PushDecision> BeforePushHooks(int64_t step,
                                               const ComputedStep& computed);
  // Runs the AfterStep hooks if `event` answers a finished step, those of
  // AfterWait if it grants a step and answers none; returns the event for the
  // machine.
  SessionEvent AfterStepHooks(SessionEvent event);
  void Handle(const SessionEvent& event);
  void SayLostSteps(const LoadedModel& model) const;
  SessionEvent AfterWaitHooks(SessionEvent event);
  // Calls AtEnd of all; returns the first error.
  absl::Status EndHooks(const EndRecord& end);
  void SayDroppedSteps() const;
  int64_t SeenEpoch(int64_t seen_epoch) const;
  EndRecord MakeEnd(bool completed, const std::string& stop_reason);
  absl::Time Deadline() const;

  const Options options_;
  const Parts parts_;
  // Shared with callbacks that may outlive the session.
  const std::shared_ptr<EventQueue> queue_;
  SessionMachine machine_;
  std::unique_ptr<StateWatch> watch_;

  // A hook's wish; the machine gets it before the event at hand.
  std::optional<StopEvent> stop_asked_;
  // A signal came: never ready again.
  std::atomic<bool> draining_{false};

  StepReport reported_;
  // A task that is not the chief leaves, and has the last values.
  bool brought_last_ = false;
  // Has this process loaded the model of an epoch that is not yet entered?
  bool loaded_ = false;
  bool loaded_initialized_ = false;
  // As RegisterRequest's.
  int32_t highest_index_ = 0;
  int exit_code_ = -1;
  std::string exit_text_;
  bool left_without_ps_ = false;
  bool was_replaced_ = false;

  int64_t global_step_ = 0;
  int64_t first_global_step_ = 0;
  int64_t first_examples_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  absl::Time first_step_time_ = absl::InfinitePast();
  absl::Time entered_time_ = absl::InfinitePast();
  absl::Time stopped_time_ = absl::InfinitePast();
};

}  // namespace muster

#endif  // WORKER_SESSION_TRAINING_SESSION_H_
