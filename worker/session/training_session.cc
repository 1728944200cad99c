#include "worker/session/training_session.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/call_table.h"
#include "common/rpc/protocol.h"
#include "worker/client/call_status.h"
#include "worker/session/dropped_step.h"
#include "worker/session/stepping.h"
#include "worker/session/trained_rows.h"

namespace muster {
namespace {

// Every control call; Watch has its own.
constexpr absl::Duration kCallTimeout = absl::Seconds(10);
// The ps that asked for a save waits 6 s.
constexpr absl::Duration kSaveReportTimeout = absl::Seconds(1);
// The longest pause between two ticks: a bound, should next_wakeup be far.
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// A model epoch of a checkpoint that is larger by more is damaged.
constexpr int64_t kMaxSavedRestores = 1'000'000'000;

// A callback that turns a reply into an event.
template <typename Event, typename Reply>
ReplyCallback<Reply> PushTo(const std::shared_ptr<EventQueue>& queue) {
  return [queue](absl::StatusOr<Reply> reply) {
    queue->Push(Event{std::move(reply)});
  };
}

// Thread-safe.
void ReportSave(Link* coordination, const Clock& clock,
                const std::shared_ptr<EventQueue>& queue, const Sender& sender,
                const SendSaveReport& report) {
  ReportSaveRequest request;
  *request.mutable_sender() = sender;
  request.set_save_request(report.save_request);
  request.set_error(report.error);
  coordination->Call(
      kReportSaveCall, request, clock.Now() + kSaveReportTimeout,
      [queue, report](const absl::StatusOr<ReportSaveReply>& reply) {
        if (reply.ok() || !IsTransient(reply.status())) return;
        queue->Push(SaveReportLostEvent{report.save_request, report.error,
                                        report.attempt});
      });
}

Reporter::Level LevelOf(bool is_error) {
  return is_error ? Reporter::kError : Reporter::kInfo;
}

// NaN if `part` is not known (-1).
double Fraction(int64_t part, int64_t whole) {
  if (part < 0) return std::numeric_limits<double>::quiet_NaN();
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

TrainingSession::TrainingSession(const Options& options, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      queue_(std::make_shared<EventQueue>(parts_.clock)),
      machine_(options.machine) {
  watch_ = std::make_unique<StateWatch>(
      parts_.coordination, parts_.clock, options_.sender,
      [queue = queue_](absl::StatusOr<JobState> state) {
        queue->Push(WatchEvent{std::move(state)});
      });
}

TrainingSession::~TrainingSession() = default;

void TrainingSession::StopJob(absl::string_view reason,
                              const absl::Status& failure) {
  if (!stop_asked_.has_value()) {
    stop_asked_ = StopEvent{std::string(reason), failure};
  }
}

void TrainingSession::RequestStop(int signal) {
  // What stops for it comes after it.
  queue_->Push(SignalEvent{signal});
  draining_ = true;
  parts_.set_serving(false);
}

bool TrainingSession::MayGoOn() {
  while (const auto event = queue_->PopUrgent()) Handle(*event);
  const bool wants_save =
      machine_.WantsSave() && job_state().phase() == RUNNING;
  return goes_on() && exit_code_ < 0 && !wants_save;
}

int TrainingSession::Run() {
  queue_->Push(TickEvent{});
  while (exit_code_ < 0) {
    const absl::Duration pause =
        std::clamp(machine_.next_wakeup() - parts_.clock->Now(),
                   absl::ZeroDuration(), kLongestPause);
    SessionEvent event = queue_->Pop(pause).value_or(TickEvent{});
    event = AfterStepHooks(std::move(event));
    if (auto stop = std::exchange(stop_asked_, std::nullopt)) Handle(*stop);
    Handle(event);
  }
  watch_.reset();
  return exit_code_;
}

void TrainingSession::Handle(const SessionEvent& event) {
  for (const SessionAction& action :
       machine_.Handle(event, parts_.clock->Now())) {
    std::visit([this](const auto& a) { Do(a); }, action);
  }
}

absl::Time TrainingSession::Deadline() const {
  return parts_.clock->Now() + kCallTimeout;
}

// ---- Actions ------------------------------------------------------------

void TrainingSession::Do(const SendHello& action) {
  HelloRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = options_.sender;
  request.set_sender_address(options_.sender_address);
  for (const auto& [index, address] : options_.ps_addresses) {
    (*request.mutable_ps_addresses())[index] = address;
  }
  request.set_ps_index(action.ps_task);
  request.set_muster_version(std::string(kMusterVersion));
  request.set_takeover(action.takeover);
  parts_.hello(action.ps_task, request,
               [queue = queue_,
                ps_task = action.ps_task](absl::StatusOr<HelloReply> reply) {
                 queue->Push(HelloEvent{ps_task, std::move(reply)});
               });
}

void TrainingSession::Do(const SendRegister& action) {
  RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  *request.mutable_sender() = options_.sender;
  request.set_training_fingerprint(options_.training_fingerprint);
  request.set_training_text(options_.training_text);
  request.set_chief(options_.machine.chief);
  request.set_takeover(action.takeover);
  request.set_goes_on(action.goes_on);
  request.set_asks_only(action.asks_only);
  const int32_t own = options_.is_numbered ? options_.sender.task().index() : 0;
  highest_index_ = std::max({highest_index_, job_state().highest_index(), own});
  request.set_highest_index(highest_index_);
  request.set_is_numbered(options_.is_numbered);
  request.mutable_data()->Assign(options_.data.begin(), options_.data.end());
  parts_.coordination->Call(kRegisterCall, request, Deadline(),
                            PushTo<RegisterEvent, RegisterReply>(queue_));
}

void TrainingSession::Do(const SendWatch& action) {
  watch_->Start(action.state_version);
}

void TrainingSession::Do(const SendBeginEpoch& action) {
  BeginEpochRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_seen_epoch(SeenEpoch(action.seen_epoch));
  parts_.coordination->Call(kBeginEpochCall, request, Deadline(),
                            PushTo<BeginEpochEvent, BeginEpochReply>(queue_));
}

// A damaged count that got into a checkpoint must not end its training for
// good; messages of former ps tasks do not fit in any case.
int64_t TrainingSession::SeenEpoch(int64_t seen_epoch) const {
  const int64_t saved = parts_.source->SavedEpoch();
  if (saved <= seen_epoch + kMaxSavedRestores) {
    return std::max(saved, seen_epoch);
  }
  parts_.reporter.Error(absl::StrCat(
      "a checkpoint is of model epoch ", saved,
      ", which is no count of restores: counting on from ", seen_epoch));
  return seen_epoch;
}

void TrainingSession::Do(const LoadModel& action) {
  // A save that ended behind the load would be newer than what is loaded.
  if (parts_.wait_for_saves) parts_.wait_for_saves();
  LoadEvent event = parts_.source->Load(action);
  loaded_ = event.model.ok();
  loaded_initialized_ = loaded_ && event.model->initialized;
  if (event.model.ok()) SayLostSteps(*event.model);
  queue_->Push(std::move(event));
}

// Says which steps the restored model lacks, as far as ps task 0 still knew
// them: with a new one each worker says it itself, when it enters the epoch.
void TrainingSession::SayLostSteps(const LoadedModel& model) const {
  for (const WorkerState& before : job_state().workers()) {
    const TaskId& task = before.sender().task();
    int64_t kept = 0;
    for (const WorkerState& worker : model.workers) {
      if (worker.sender().task() == task) kept = worker.steps();
    }
    if (before.steps() <= kept) continue;
    parts_.reporter.Info(DescribeLostSteps(task, before.steps() - kept));
  }
}

void TrainingSession::Do(const SendCommit& action) {
  CommitEpochRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_model_epoch(action.model_epoch);
  request.set_resumes(action.resumes);
  request.set_fingerprint(options_.machine.model_fingerprint);
  request.set_global_step(action.model.global_step);
  request.set_examples(action.model.examples);
  *request.mutable_stop() = options_.stop;
  *request.mutable_replication() = options_.replication;
  request.set_saves(options_.saves);
  request.set_save_every_steps(options_.checkpoint.every_steps());
  request.set_save_every_seconds(options_.checkpoint.every_seconds());
  request.set_epoch_examples(options_.epoch_examples);
  request.set_batch_size(options_.step_rows);
  for (const WorkerState& worker : action.model.workers) {
    *request.add_workers() = worker;
  }
  if (action.model.ledger.has_value()) {
    *request.mutable_ledger() = *action.model.ledger;
  }
  request.set_reached(action.model.reached);
  if (action.model.evaluations.global_step() > 0) {
    *request.mutable_evaluations() = action.model.evaluations;
  }
  for (size_t i = 0; i < action.ps_incarnations.size(); ++i) {
    (*request.mutable_ps_incarnations())[static_cast<int>(i)] =
        action.ps_incarnations[i];
  }
  parts_.coordination->Call(kCommitEpochCall, request, Deadline(),
                            PushTo<CommitEvent, CommitEpochReply>(queue_));
}

void TrainingSession::Do(const EnterEpoch& action) {
  const absl::Time now = parts_.clock->Now();
  absl::Status status = parts_.steps->Enter(action);
  parts_.on_enter(action);
  if (action.is_new) {
    global_step_ = job_state().global_step();
    if (entered_time_ == absl::InfinitePast()) {
      entered_time_ = now;
      first_global_step_ = global_step_;
      first_examples_ = job_state().examples();
    }
    const EpochRecord epoch{action.model_epoch,
                            global_step_,
                            std::exchange(loaded_initialized_, false),
                            !std::exchange(loaded_, false),
                            job_state().evaluations(),
                            now};
    for (Hook* hook : parts_.hooks) {
      if (status.ok()) status = hook->AfterEnter(epoch);
    }
  }
  if (!status.ok()) queue_->Push(TrainEvent{status});
}

void TrainingSession::Do(const SendStep& action) {
  reported_ = action.report;
  StepRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_model_epoch(action.model_epoch);
  request.set_ps_incarnation(action.ps_incarnation);
  request.set_step(action.report.step);
  request.set_examples(action.report.examples);
  *request.mutable_rows() = action.report.rows;
  request.set_skipped(action.report.skipped);
  request.set_step_rows(options_.step_rows);
  request.set_leases_ahead(options_.leases_ahead);
  if (action.report.pass.has_value()) {
    *request.mutable_pass() = *action.report.pass;
  }
  request.set_loss(action.report.loss);
  request.set_staleness(action.report.staleness);
  request.set_abandoned(action.report.abandoned);
  request.set_round(action.report.round);
  request.set_late(action.report.late);
  request.set_stop_reason(action.stop_reason);
  request.set_is_done(action.is_done);
  if (parts_.evaluations != nullptr) {
    *request.mutable_evaluations() = parts_.evaluations();
  }
  request.set_max_wait_ms(
      static_cast<int32_t>(absl::ToInt64Milliseconds(action.max_wait)));
  parts_.coordination->Call(kStepCall, request, Deadline() + action.max_wait,
                            PushTo<StepEvent, StepReply>(queue_));
}

void TrainingSession::Do(const TrainStep& action) {
  const auto before_push = [this, &action](const ComputedStep& computed) {
    return BeforePushHooks(action.step, computed);
  };
  OnTrained(parts_.steps->Run(action.step, action.grant, before_push));
}

void TrainingSession::Do(const ResumeStep&) {
  OnTrained(parts_.steps->Resume());
}

void TrainingSession::OnTrained(absl::StatusOr<StepReport> report) {
  parts_.set_serving(report.ok());
  if (draining_) parts_.set_serving(false);
  queue_->Push(TrainEvent{std::move(report), parts_.steps->may_resume()});
}

void TrainingSession::Do(const SaveNow& action) {
  // At once, on the saver's thread, which may outlive the session, whose own
  // thread may be in a step.
  parts_.save_now([coordination = parts_.coordination, clock = parts_.clock,
                   queue = queue_, sender = options_.sender,
                   number = action.save_request](const absl::Status& saved) {
    const std::string error = saved.ok() ? "" : std::string(saved.message());
    ReportSave(coordination, *clock, queue, sender,
               {number, error, /*attempt=*/1});
  });
}

// The account of synchronous replication, by worker.
void TrainingSession::SayDroppedSteps() const {
  if (!options_.replication.has_sync()) return;
  std::string line = "gradients in updates (dropped):";
  const char* comma = " ";
  for (const WorkerState& worker : job_state().workers()) {
    absl::StrAppend(&line, std::exchange(comma, ", "),
                    TaskName(worker.sender().task()), " ", worker.steps(), " (",
                    worker.dropped_steps(), ")");
  }
  parts_.reporter.Info(line);
}

void TrainingSession::Do(const SendSaveReport& action) {
  ReportSave(parts_.coordination, *parts_.clock, queue_, options_.sender,
             action);
}

void TrainingSession::Do(const RunFinal& action) {
  parts_.set_serving(false);
  EndRecord end = MakeEnd(action.completed, action.stop_reason);
  end.failed = action.failed;
  end.is_discarded = action.is_discarded;
  parts_.reporter.Info(absl::StrCat(
      "the training ends at step=", end.global_step, ": ", end.stop_reason));
  SayDroppedSteps();
  const auto rows =
      DescribeTrainedRows(job_state(), options_.skips_bad_records);
  if (!rows.empty()) parts_.reporter.Info(rows);
  absl::Status status = EndHooks(end);
  if (action.completed) {
    // An evaluation is worth keeping even if the model could not be saved.
    const absl::Status written = parts_.write_result(end);
    if (!status.ok() && !written.ok()) {
      parts_.reporter.Error(written.message());
    }
    status.Update(written);
  }
  if (action.completed && !action.failed) parts_.steps->BringLast();
  queue_->Push(FinalEvent{std::move(status)});
}

void TrainingSession::Do(const SendFinish& action) {
  // The job waits for this task, and so the shards are there.
  const bool is_done = !action.stays && action.reason == "done";
  if (is_done && !options_.machine.chief &&
      !std::exchange(brought_last_, true)) {
    parts_.steps->BringLast();
  }
  FinishRequest request;
  *request.mutable_sender() = options_.sender;
  request.set_reason(action.reason);
  request.set_stop_job(action.stop_job);
  request.set_unsaved(action.unsaved);
  request.set_stays(action.stays);
  request.set_model_epoch(action.model_epoch);
  request.set_ps_incarnation(action.ps_incarnation);
  *request.mutable_traffic() = parts_.traffic();
  parts_.coordination->Call(kFinishCall, request, Deadline(),
                            PushTo<FinishEvent, FinishReply>(queue_));
}

void TrainingSession::Do(const Say& action) {
  parts_.reporter.Report(LevelOf(action.is_error), action.text);
}

void TrainingSession::Do(const Exit& action) {
  parts_.set_serving(false);
  if (!options_.machine.chief && action.code == kExitDone) {
    const absl::Status status =
        EndHooks(MakeEnd(/*completed=*/true, job_state().stop_reason()));
    if (!status.ok()) parts_.reporter.Error(status.message());
    // Another task's word may be all that is known of it.
    const std::string& reason = job_state().stop_reason();
    if (!reason.empty()) {
      parts_.reporter.Info(absl::StrCat("the training has ended: ", reason));
    }
  }
  if (!action.text.empty()) {
    parts_.reporter.Report(LevelOf(IsFailure(action.code)), action.text);
  }
  exit_text_ = action.text;
  left_without_ps_ = action.without_ps;
  was_replaced_ = action.is_replaced;
  exit_code_ = action.code;
}

// ---- Hooks --------------------------------------------------------------

absl::StatusOr<PushDecision> TrainingSession::BeforePushHooks(
    int64_t step, const ComputedStep& computed) {
  StepRecord record;
  record.step = step;
  record.global_step = global_step_;
  record.loss = computed.loss;
  record.has_loss = computed.has_loss;
  record.accuracy = Fraction(computed.correct, computed.examples);
  record.examples = computed.examples;
  record.now = parts_.clock->Now();
  record.tensors = computed.tensors;
  record.rows = computed.rows;
  record.towers = computed.towers;
  record.push_begun = computed.push_begun;
  record.gradients_are_finite = computed.gradients_are_finite;
  record.fetch_tensors = computed.fetch_tensors;
  for (Hook* hook : parts_.hooks) {
    ASSIGN_OR_RETURN(const PushDecision decision, hook->BeforePush(record));
    if (decision == PushDecision::kRefuse) return decision;
  }
  return PushDecision::kPush;
}

SessionEvent TrainingSession::AfterStepHooks(SessionEvent event) {
  const auto* answer = std::get_if<StepEvent>(&event);
  if (answer == nullptr || !answer->reply.ok()) return event;
  global_step_ = std::max(global_step_, answer->reply->global_step());
  if (reported_.step == 0) return AfterWaitHooks(std::move(event));
  if (reported_.abandoned) return event;
  StepRecord record;
  record.step = reported_.step;
  record.global_step = global_step_;
  record.loss = reported_.loss;
  record.has_loss = reported_.has_loss;
  record.accuracy = Fraction(reported_.correct, reported_.examples);
  record.examples = reported_.examples;
  record.times = reported_.times;
  record.staleness = static_cast<double>(reported_.staleness);
  record.dropped = WasDropped(reported_, *answer->reply);
  record.now = parts_.clock->Now();
  last_loss_ = record.loss;
  stopped_time_ = record.now;
  if (first_step_time_ == absl::InfinitePast()) first_step_time_ = record.now;
  for (Hook* hook : parts_.hooks) {
    const absl::Status status = hook->AfterStep(record);
    if (!status.ok()) return TrainEvent{status};
  }
  return event;
}

SessionEvent TrainingSession::AfterWaitHooks(SessionEvent event) {
  if (!std::get<StepEvent>(event).reply->granted()) return event;
  for (Hook* hook : parts_.hooks) {
    const absl::Status status = hook->AfterWait(global_step_);
    if (!status.ok()) return TrainEvent{status};
  }
  return event;
}

EndRecord TrainingSession::MakeEnd(bool completed,
                                   const std::string& stop_reason) {
  global_step_ = std::max(global_step_, job_state().global_step());
  EndRecord end;
  end.global_step = global_step_;
  end.completed = completed;
  end.stop_reason = stop_reason;
  end.now = parts_.clock->Now();
  return end;
}

absl::Status TrainingSession::EndHooks(const EndRecord& end) {
  absl::Status first_error;
  for (Hook* hook : parts_.hooks) first_error.Update(hook->AtEnd(end));
  return first_error;
}

}  // namespace muster
