#include "worker/task/run_files.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_choice.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "common/checkpoint/write_watch.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/checkpoint/finished_run.h"
#include "worker/client/call_status.h"
#include "worker/session/trained_rows.h"
#include "worker/task/run_speed.h"
#include "worker/task/worker_options.h"
#include "worker/training/replication_settings.h"
#include "worker/training/training_spec.h"

namespace muster {
namespace {

std::string FindFinishedBefore(const StepStage& steps) {
  const WorkerJob& job = steps.placed().job();
  PosixFileSystem file_system;
  const std::optional<FinishedRun> run =
      FindFinishedRun(&file_system, {job.options.train_dir,
                                     SemanticFingerprint(job.given_training),
                                     job.options.job_namespace, steps.goal()});
  if (!run.has_value()) return "";
  return absl::StrCat("step ", run->global_step(), ", by stop.",
                      run->stop_reason(), ", as ", job.options.train_dir,
                      " says");
}

RunTimes TimesOf(const WorkerOptions& options, const TrainingSession& session) {
  RunTimes times;
  times.start = options.start_time;
  times.entered = session.entered_time();
  times.first_examples = session.first_examples();
  times.first_step = session.first_step_time();
  times.stopped = session.stopped_time();
  times.end = options.clock->Now();
  return times;
}

// None without checkpoint.keep_best.
absl::StatusOr<std::optional<TrainingResult::Best>> FindBest(
    const WorkerOptions& options) {
  if (!options.training.checkpoint().has_keep_best()) return std::nullopt;
  PosixFileSystem file_system;
  ASSIGN_OR_RETURN(const std::optional<WatchedFigure> figure,
                   FindBestCheckpoint(&file_system, options.train_dir));
  if (!figure.has_value()) return std::nullopt;
  return TrainingResult::Best{
      absl::StrCat(options.train_dir, "/", CheckpointName(figure->best_step())),
      figure->best_step(), figure->metric(), figure->best()};
}

int64_t ModelBytes(const PlacedModel& model) {
  int64_t bytes = 0;
  for (const TensorDef& tensor : model.tensors) {
    bytes += NumElements(tensor.shape()) *
             static_cast<int64_t>(SizeOf(tensor.dtype()));
  }
  return bytes;
}

}  // namespace

RunFiles::RunFiles(const StepStage* steps, ChiefParts* chief)
    : steps_(*steps),
      chief_(chief),
      finished_before_(FindFinishedBefore(*steps)) {}

absl::Status RunFiles::Write(const std::string& path,
                             const std::string& content) const {
  const auto write = [&] { return WriteFileAtomically(path, content); };
  if (chief_ == nullptr) return write();
  return chief_->write_watch()->Watch(absl::StrCat("write of ", path), write);
}

void RunFiles::MarkFinished(const std::string& folder, const EndRecord& end,
                            const StopSpec& stop) const {
  if (!end.completed || !IsStopCondition(end.stop_reason)) return;
  const WorkerJob& job = steps_.placed().job();
  FinishedRun run;
  run.set_training_fingerprint(SemanticFingerprint(job.given_training));
  run.set_namespace_(job.options.job_namespace);
  run.set_global_step(end.global_step);
  run.set_stop_reason(end.stop_reason);
  *run.mutable_stop() = stop;
  const absl::Status written =
      Write(FinishedRunPath(folder), FinishedRunText(run));
  if (written.ok()) return;
  job.options.reporter.Warning(absl::StrCat(
      "how the run has ended is not kept beside its last checkpoint: ",
      written.message()));
}

absl::Status RunFiles::WriteResult(const EndRecord& end, const Outcome& outcome,
                                   const TrainingSession& session) const {
  const WorkerOptions& options = steps_.placed().options();
  // The evaluation at the end has failed, or there is none.
  const bool failed = steps_.is_evaluated() && outcome.evaluated.empty();
  if (options.train_dir.empty() || failed) return absl::OkStatus();
  RETURN_IF_ERROR(chief_->CheckHeld());
  TrainingResult result = DescribeRun();
  result.evaluations = outcome.evaluated;
  result.final_loss = session.last_loss();
  result.global_step = end.global_step;
  result.start_step = session.first_global_step();
  result.stop_reason = end.stop_reason;
  result.checkpoint = outcome.newest_checkpoint;
  ASSIGN_OR_RETURN(result.best, OfFile(FindBest(options)));
  const JobState state = StateAtEnd(session);
  AddSpeed(state, TimesOf(options, session), &result);
  result.coverage = DescribeTrainedRows(
      state, options.training.input().on_bad_record() == SKIP);
  const std::string path = absl::StrCat(options.train_dir, "/result.json");
  if (StaysAsItIs(path, result)) {
    options.reporter.Info(absl::StrCat(path, " stays as it is"));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(OfFile(Write(path, ResultJson(result))));
  options.reporter.Info(absl::StrCat("wrote ", path));
  return absl::OkStatus();
}

// A start without a step has no loss and no rates, but the file has.
bool RunFiles::StaysAsItIs(const std::string& path,
                           const TrainingResult& result) const {
  if (finished_before_.empty() || result.start_step != result.global_step) {
    return false;
  }
  const absl::StatusOr<std::string> old = ReadFile(path);
  return old.ok() && HasEvaluations(*old, result.evaluations);
}

TrainingResult RunFiles::DescribeRun() const {
  const WorkerJob& job = steps_.placed().job();
  const ClusterSpec& cluster = job.options.cluster;
  const TrainingSpec& training = job.options.training;
  const StepTraits& traits = steps_.traits();
  TrainingResult result;
  result.model = training.model().name();
  result.job_namespace = job.options.job_namespace;
  result.mode = cluster.empty() ? "standalone" : "cluster";
  result.replication = cluster.is_all_reduce()
                           ? kAllReduceName
                           : ReplicationName(training.replication());
  result.replication_settings = ReplicationNumbers(training.replication());
  result.optimizer = training.optimizer().name();
  result.device = traits.backend;
  result.devices = traits.device_titles;
  result.num_ps = cluster.is_all_reduce() ? 0 : cluster.num_ps();
  result.num_workers =
      cluster.takes_any_worker() ? 0 : static_cast<int>(job.tasks.size());
  result.compute_threads = job.options.compute_threads;
  result.seed = training.seed();
  result.batch_size = traits.shape.batch_size;
  result.accumulate_batches = traits.shape.accumulate_batches;
  result.rows_per_push = traits.shape.worker_rows();
  result.codec = training.gradient().codec();
  result.error_feedback = training.gradient().error_feedback();
  const ExchangedBytes bytes = steps_.bytes();
  result.gradient_bytes_sent = bytes.sent;
  result.gradient_bytes_float32 = bytes.sent_float32;
  result.pull_codec = training.pull().codec();
  result.pull_bytes_received = bytes.received;
  result.pull_bytes_float32 = bytes.received_float32;
  result.model_bytes = ModelBytes(steps_.placed().model());
  result.muster_version = std::string(kMusterVersion);
  return result;
}

// With what this worker will say in its Finish.
JobState RunFiles::StateAtEnd(const TrainingSession& session) const {
  JobState state = session.job_state();
  const Traffic traffic = steps_.MeasuredTraffic();
  if (traffic.pushes() == 0) return state;
  for (WorkerState& worker : *state.mutable_workers()) {
    if (worker.sender().task() == steps_.placed().options().self) {
      *worker.mutable_traffic() = traffic;
    }
  }
  return state;
}

}  // namespace muster
