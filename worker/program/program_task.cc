#include "worker/program/program_task.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/exit_code.h"
#include "common/rpc/error_reason.h"
#include "worker/client/call_status.h"
#include "worker/task/worker_job.h"

namespace muster {
namespace {

// Of a task that could not begin.
int ExitCodeOfStart(const absl::Status& status) {
  if (absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
      IsDamaged(status)) {
    return kExitRetryable;
  }
  if (IsOfFile(status) && absl::IsDataLoss(status)) return kExitBadCheckpoint;
  return ExitCodeOf(status);
}

// The reverse, of a session's words.
absl::Status FailureOf(int exit_code, absl::string_view text) {
  switch (exit_code) {
    case kExitDone:
      return absl::OkStatus();
    case kExitBadConfig:
      return absl::InvalidArgumentError(text);
    case kExitBadCheckpoint:
      return OfFile(absl::DataLossError(text));
    case kExitInsecure:
      return absl::UnauthenticatedError(text);
    case kExitRetryable:
      return absl::UnavailableError(text);
    default:
      return exit_code > 128 ? absl::CancelledError(text)
                             : absl::InternalError(text);
  }
}

ProgramSteps::Options MakeStepOptions(const Clock* clock,
                                      const TrainedProgram& model) {
  ProgramSteps::Options options;
  options.clock = clock;
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    const ProgramTensor& tensor = model.tensors[i];
    StepTensor& step = options.tensors.emplace_back();
    step.name = tensor.name();
    step.shape.assign(tensor.shape().begin(), tensor.shape().end());
    step.trainable = !tensor.is_state();
    step.value = model.values[i];
  }
  options.tables = model.tables;
  return options;
}

}  // namespace

ProgramTask::ProgramTask(ProgramOptions options,
                         std::vector<absl::Span<float>> values)
    : options_(std::move(options)),
      model_{options_.tensors,   std::move(values),    options_.epoch_rows,
             options_.step_rows, options_.steps_ahead, options_.in_order,
             options_.settings,  options_.tables},
      steps_(MakeStepOptions(options_.worker.clock, model_)),
      hook_(&steps_),
      order_(model_.epoch_rows,
             static_cast<uint64_t>(options_.worker.training.seed()),
             /*shuffle=*/!model_.in_order) {
  options_.worker.latch = &latch_;
  thread_ = std::thread([this] { RunSession(); });
}

ProgramTask::~ProgramTask() { Close(); }

std::vector<int64_t> ProgramTask::RowsOf(const RowLease& lease,
                                         int64_t* epoch) {
  *epoch = 0;
  std::vector<int64_t> rows;
  const int64_t all = order_.num_examples();
  if (all == 0 || lease.ranges().empty()) return rows;
  *epoch = lease.ranges(0).first() / all;
  for (const RowRange& range : lease.ranges()) {
    for (int64_t i = 0; i < range.rows(); ++i) {
      const int64_t place = range.first() + i;
      rows.push_back(order_.Epoch(place / all)[place % all]);
    }
  }
  return rows;
}

void ProgramTask::Stop(int signal) {
  {
    absl::MutexLock lock(&mu_);
    if (signal == 0 && stop_.has_value()) return;
    stop_ = signal;
    TellStop();
  }
  if (signal != 0) {
    latch_.Stop({128 + signal, absl::StrCat("signal ", signal)});
  }
  steps_.StopWaiting();
}

void ProgramTask::TellStop() {
  if (session_ == nullptr || !stop_.has_value()) return;
  if (*stop_ == 0) {
    session_->Leave();
  } else {
    session_->RequestStop(*stop_);
  }
}

void ProgramTask::SetSession(TrainingSession* session) {
  absl::MutexLock lock(&mu_);
  session_ = session;
  TellStop();
}

int ProgramTask::Close() {
  Stop(0);
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mu_);
  return outcome_.exit_code;
}

absl::Status ProgramTask::failure() const {
  absl::MutexLock lock(&mu_);
  return outcome_.failure;
}

void ProgramTask::RunSession() {
  absl::StatusOr<Outcome> outcome = Train();
  if (!outcome.ok()) outcome = OutcomeOf(outcome.status());
  SetSession(nullptr);
  steps_.Disconnect();
  run_.reset();
  stage_.reset();
  health_.reset();
  {
    absl::MutexLock lock(&mu_);
    outcome_ = *std::move(outcome);
  }
  steps_.End();
}

absl::StatusOr<ProgramTask::Outcome> ProgramTask::Train() {
  TaskId* const self = &options_.worker.self;
  if (self->index() < 0) {
    ASSIGN_OR_RETURN(*self, options_.number_task(options_.worker));
    if (self->index() < 0) return Outcome();
  }
  ASSIGN_OR_RETURN(WorkerLinks links, options_.make_links(options_.worker));
  RETURN_IF_ERROR(CreateStages(std::move(links)));
  TrainingSession& session = run_->session();
  SetSession(&session);
  const int exit_code = session.Run();
  if (exit_code == kExitDone && !steps_.has_last()) RestoreLast();
  return Outcome{exit_code, FailureOf(exit_code, session.exit_text())};
}

void ProgramTask::RestoreLast() {
  if (!placed_->job().is_chief()) return;
  absl::Status status;
  if (options_.worker.train_dir.empty()) {
    status = absl::NotFoundError("no --train_dir: nothing was saved");
  } else {
    status = stage_->ReadNewestCheckpoint();
  }
  steps_.SetHasValues(status.ok());
  if (status.ok()) return;
  options_.worker.reporter.Error(absl::StrCat(
      "read the job's last values for the program: ", status.message()));
}

absl::Status ProgramTask::CreateStages(WorkerLinks links) {
  ASSIGN_OR_RETURN(WorkerJob job, WorkerJob::Create(options_.worker));
  ASSIGN_OR_RETURN(health_, StartHealth(job.options));
  ASSIGN_OR_RETURN(placed_, PlaceProgram(std::move(job), model_));
  ASSIGN_OR_RETURN(stage_, ProgramStage::Create(placed_.get(), &model_, &steps_,
                                                std::move(links)));
  ASSIGN_OR_RETURN(run_, TrainingRun::Create({stage_.get(),
                                              /*test_model=*/nullptr,
                                              health_.get(), &hook_}));
  WriteSummary write;
  if (EventFileWriter* const writer = run_->summaries()) {
    write = [writer](int64_t global_step, Summary summary) {
      writer->Add(global_step, std::move(summary));
    };
  }
  std::function<void()> save;
  if (placed_->job().is_chief() && !options_.worker.train_dir.empty()) {
    save = [this] {
      // The saver itself says how it went.
      run_->hooks().SaveNow([](const absl::Status&) {});
    };
  }
  hook_.Connect(std::move(write), std::move(save));
  return absl::OkStatus();
}

ProgramTask::Outcome ProgramTask::OutcomeOf(const absl::Status& start) const {
  {
    absl::MutexLock lock(&mu_);
    if (stop_.value_or(0) != 0) return {128 + *stop_, start};
  }
  options_.worker.reporter.Error(start.message());
  return {ExitCodeOfStart(start), start};
}

}  // namespace muster
