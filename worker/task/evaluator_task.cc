#include "worker/task/evaluator_task.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/cluster/task_id.h"
#include "common/process/exit_code.h"
#include "common/rpc/job_watcher.h"
#include "worker/checkpoint/checkpoint_follower.h"
#include "worker/checkpoint/finished_run.h"
#include "worker/hook/summary_hooks.h"
#include "worker/hook/summary_writer.h"
#include "worker/input/fill_batch.h"
#include "worker/task/evaluator.h"
#include "worker/task/result_file.h"
#include "worker/task/run_data.h"
#include "worker/task/worker_options.h"
#include "worker/training/training_parts.h"
#include "worker/training/training_spec.h"

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
      file_system_(std::make_unique<PosixFileSystem>(
          [this] { return !interrupted(); })) {}

EvaluatorTask::~EvaluatorTask() = default;

absl::Status EvaluatorTask::CreateParts() {
  if (options_.train_dir.empty()) {
    return absl::InvalidArgumentError(
        "--train_dir is missing: give the evaluator the chief's, on the same "
        "machine or a shared file system");
  }
  ASSIGN_OR_RETURN(health_, StartHealth(options_));
  WriteWatch::Options watch;
  watch.clock = options_.clock;
  watch.reporter = options_.reporter;
  write_watch_ = std::make_unique<WriteWatch>(std::move(watch));
  RETURN_IF_ERROR(CreateModel());
  RETURN_IF_ERROR(OpenAtStart());
  if (options_.training.input().on_bad_record() == SKIP) {
    bad_records_ = std::make_unique<BadRecords>(options_.reporter);
  }
  if (HasSummaries(options_.training)) {
    summaries_ =
        MakeSummaryWriter(file_system_.get(), options_.clock,
                          options_.train_dir, kEvaluatorJob, options_.reporter);
  }
  return absl::OkStatus();
}

absl::Status EvaluatorTask::CreateModel() {
  SavedModel::Options options;
  options.training = options_.training;
  options.device_choice = options_.device_choice;
  options.log_device_placement = options_.log_device_placement;
  options.compute_threads = options_.compute_threads;
  options.reporter = options_.reporter;
  ASSIGN_OR_RETURN(saved_, SavedModel::Create(options));
  return CheckEvaluation(options_.training, *saved_->model());
}

absl::Status EvaluatorTask::OpenAtStart() {
  ASSIGN_OR_RETURN(const RunSchema run,
                   FindRunSchema(options_.train_dir, options_.reporter));
  if (run.has_checkpoint) return OpenHalfBy(run.schema);
  options_.reporter.Info(
      absl::StrCat("the ", HalfName(half()),
                   " half is opened with the run's first checkpoint, which "
                   "says what its data are"));
  return absl::OkStatus();
}

absl::Status EvaluatorTask::OpenHalfBy(std::shared_ptr<const DataSchema> run) {
  const bool is_open_so = run == nullptr || (opened_by_ != nullptr &&
                                             IsSameData(*run, *opened_by_));
  if (data_set_ != nullptr && is_open_so) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      data_set_, OpenHalfOfRun(options_.training, *saved_->model(),
                               {half(), LabelsOf(saved_->model()->loss())}, run,
                               ProgressOutputOf(options_)));
  batch_ = MakeBatch(*data_set_, saved_->model()->batch_size());
  opened_by_ = std::move(run);
  return absl::OkStatus();
}

void EvaluatorTask::EndByData(const absl::Status& status) {
  options_.reporter.Error(status.message());
  options_.latch->Stop(
      {kExitBadConfig,
       absl::StrCat("the ", HalfName(half()), " half cannot be opened")});
}

int EvaluatorTask::Run() {
  StopLatch job;
  JobWatcher::Options watch;
  watch.address = options_.cluster.ps_addresses().front();
  watch.credentials = options_.credentials.channel_to(kPsJob, 0);
  watch.sender = SenderOf(options_);
  watch.max_wait = options_.max_wait;
  watch.reporter = options_.reporter;
  watch.clock = options_.clock;
  watch.latch = &job;
  // The chief leaves its result just before the end.
  watch.has_ended = [this, before = ReadResult()] {
    const absl::StatusOr<std::string> result = ReadResult();
    const bool is_new = result.ok() && (!before.ok() || *result != *before);
    return is_new || WasFinishedBefore();
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
  follow.allow_non_finite = options_.training.non_finite().allow();
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

bool EvaluatorTask::WasFinishedBefore() const {
  WantedRun wanted;
  wanted.train_dir = options_.train_dir;
  wanted.training_fingerprint = SemanticFingerprint(options_.training);
  wanted.job_namespace = options_.job_namespace;
  wanted.goal.stop = options_.training.stop();
  return FindFinishedRun(file_system_.get(), wanted).has_value();
}

Split EvaluatorTask::half() const {
  return WatchedHalf(options_.training.input());
}

bool EvaluatorTask::interrupted() const {
  return options_.latch->WaitFor(absl::ZeroDuration()).has_value();
}

absl::StatusOr<EvaluationResult> EvaluatorTask::Evaluate(
    const CheckpointReader& reader) {
  const CheckpointManifest& manifest = reader.manifest();
  const absl::Status opened =
      OpenHalfBy(manifest.has_schema()
                     ? std::make_shared<const DataSchema>(manifest.schema())
                     : nullptr);
  if (!opened.ok()) {
    EndByData(opened);
    return absl::CancelledError(opened.message());
  }
  RETURN_IF_ERROR(
      write_watch_->WatchRead(absl::StrCat("read of ", reader.path()),
                              [&] { return saved_->LoadCheckpoint(reader); }));
  return EvaluateModel(
      options_.training.evaluation(), *data_set_, saved_->model(), batch_,
      [this] { return !interrupted(); }, bad_records_.get(),
      ProgressOutputOf(options_));
}

void EvaluatorTask::Report(const CheckpointReader& reader,
                           const EvaluationResult& result) {
  const int64_t step = reader.manifest().global_step();
  options_.reporter.Info(
      absl::StrCat("evaluated ", reader.path(), ": step=", step, " ",
                   DescribeEvaluation(result), " ", result.NameOf("examples"),
                   "=", result.examples));
  ReportRemarks(result, options_.reporter);
  if (summaries_ != nullptr) {
    // A process before this one, or the training before it went back, may have
    // drawn these steps.
    if (last_step_ < 0 || step <= last_step_) summaries_->AddSessionStart(step);
    write_watch_->Watch("write of the summaries", [&] {
      MakeEvaluationSummaries(summaries_.get(), options_.reporter)(step,
                                                                   result);
    });
  }
  last_step_ = step;
  const std::string path = absl::StrCat(options_.train_dir, "/evaluator.json");
  const absl::Status written = write_watch_->Watch(
      absl::StrCat("write of ", path),
      [&] { return WriteFileAtomically(path, EvaluationJson(step, result)); });
  if (!written.ok()) options_.reporter.Error(written.message());
}

}  // namespace muster
