#include "worker/task/evaluator_task.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/cluster/task_id.h"
#include "common/rpc/job_watcher.h"
#include "worker/checkpoint/checkpoint_follower.h"
#include "worker/hook/summary_hooks.h"
#include "worker/hook/summary_writer.h"
#include "worker/input/fill_batch.h"
#include "worker/task/evaluator.h"
#include "worker/task/result_file.h"
#include "worker/training/training_parts.h"

namespace muster {
namespace {

constexpr int64_t kMaxResultBytes = int64_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<EvaluatorTask>> EvaluatorTask::Create(
    EvaluatorOptions options) {
  auto task = absl::WrapUnique(new EvaluatorTask(std::move(options)));
  RETURN_IF_ERROR(task->CreateParts());
  return task;
}

EvaluatorTask::EvaluatorTask(EvaluatorOptions options)
    : options_(std::move(options)),
      file_system_(std::make_unique<PosixFileSystem>()) {}

EvaluatorTask::~EvaluatorTask() = default;

absl::Status EvaluatorTask::CreateParts() {
  if (options_.train_dir.empty()) {
    return absl::InvalidArgumentError(
        "--train_dir is missing: give the evaluator the chief's, on the same "
        "machine or a shared file system");
  }
  if (!options_.listen_address.empty()) {
    PortWait wait;
    wait.clock = options_.clock;
    wait.latch = options_.latch;
    wait.reporter = options_.reporter;
    ASSIGN_OR_RETURN(health_,
                     HealthServer::Start(options_.listen_address, wait));
  }
  RETURN_IF_ERROR(CreateModel());
  ASSIGN_OR_RETURN(test_set_,
                   OpenDataSet(options_.training, *model_, Split::kTest));
  batch_ = MakeBatch(*test_set_, model_->batch_size());
  if (HasSummaries(options_.training)) {
    summaries_ =
        MakeSummaryWriter(file_system_.get(), options_.clock,
                          options_.train_dir, kEvaluatorJob, options_.reporter);
  }
  return absl::OkStatus();
}

absl::Status EvaluatorTask::CreateModel() {
  const DeviceChoice& choice = options_.device_choice;
  ASSIGN_OR_RETURN(const ChosenDevices devices, ChooseDevices(choice));
  if (!devices.note.empty()) options_.reporter.Info(devices.note);
  const std::string& device = devices.names.front();
  ASSIGN_OR_RETURN(
      backend_,
      OpenDevice(device, MakeBackendOptions(options_.training, choice.gpu,
                                            options_.compute_threads)));
  ASSIGN_OR_RETURN(model_, CompileTestModel(options_.training, backend_.get(),
                                            /*taken_bytes=*/0));
  if (!options_.log_device_placement) return absl::OkStatus();
  for (const absl::string_view line :
       absl::StrSplit(model_->DescribePlan(device), '\n', absl::SkipEmpty())) {
    options_.reporter.Info(line);
  }
  return absl::OkStatus();
}

int EvaluatorTask::Run() {
  StopLatch job;
  JobWatcher::Options watch;
  watch.address = options_.cluster.ps_addresses().front();
  *watch.sender.mutable_task() = options_.self;
  watch.sender.set_incarnation(options_.incarnation);
  watch.max_wait = options_.max_wait;
  watch.reporter = options_.reporter;
  watch.clock = options_.clock;
  watch.latch = &job;
  // The chief leaves its result just before the end.
  watch.has_ended = [this, before = ReadResult()] {
    const absl::StatusOr<std::string> result = ReadResult();
    return result.ok() && (!before.ok() || *result != *before);
  };
  const JobWatcher watcher(watch);

  CheckpointFollower::Options follow;
  follow.train_dir = options_.train_dir;
  follow.evaluate = [this](const CheckpointReader& reader) {
    return Evaluate(reader);
  };
  follow.report = [this](const CheckpointReader& reader,
                         const EvaluationResult& result) {
    Report(reader, result);
  };
  follow.reporter = options_.reporter;
  follow.file_system = file_system_.get();
  follow.job = &job;
  follow.interrupted = options_.latch;
  CheckpointFollower follower(std::move(follow));
  if (health_ != nullptr) health_->SetServing(true);
  const int exit_code = follower.Run();
  if (health_ != nullptr) health_->SetServing(false);
  return exit_code;
}

absl::StatusOr<std::string> EvaluatorTask::ReadResult() const {
  return ReadFile(absl::StrCat(options_.train_dir, "/result.json"),
                  kMaxResultBytes);
}

bool EvaluatorTask::interrupted() const {
  return options_.latch->WaitFor(absl::ZeroDuration()).has_value();
}

absl::StatusOr<EvaluationResult> EvaluatorTask::Evaluate(
    const CheckpointReader& reader) {
  RETURN_IF_ERROR(CheckCompatible(reader.manifest(), model_->parameters(),
                                  options_.training.optimizer()));
  RETURN_IF_ERROR(Load(reader));
  return EvaluateModel(*test_set_, model_.get(), batch_,
                       [this] { return !interrupted(); });
}

absl::Status EvaluatorTask::Load(const CheckpointReader& reader) {
  for (size_t i = 0; i < model_->parameters().size(); ++i) {
    const absl::Span<float> values = model_->parameter(static_cast<int>(i));
    RETURN_IF_ERROR(reader.Read(
        model_->parameters()[i].name(), /*slot=*/"",
        /*offset=*/0, static_cast<int64_t>(values.size()), values.data()));
  }
  return absl::OkStatus();
}

void EvaluatorTask::Report(const CheckpointReader& reader,
                           const EvaluationResult& result) {
  const int64_t step = reader.manifest().global_step();
  options_.reporter.Info(absl::StrFormat(
      "evaluated %s: step=%d test_accuracy=%.4f "
      "test_loss=%.4f examples=%d",
      reader.path(), step, result.accuracy, result.loss, result.examples));
  if (summaries_ != nullptr) {
    // A process before this one, or the training before it went back, may have
    // drawn these steps.
    if (last_step_ < 0 || step <= last_step_) summaries_->AddSessionStart(step);
    MakeEvaluationSummaries(summaries_.get())(step, result);
  }
  last_step_ = step;
  const absl::Status written =
      WriteFileAtomically(absl::StrCat(options_.train_dir, "/evaluator.json"),
                          EvaluationJson(step, result));
  if (!written.ok()) options_.reporter.Error(written.message());
}

}  // namespace muster
