// The part of WorkerTask that tells what a training came to.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/task_id.h"
#include "common/rpc/protocol.h"
#include "worker/client/call_status.h"
#include "worker/task/result_file.h"
#include "worker/task/worker_task.h"
#include "worker/training/replication_settings.h"

namespace muster {

TrainingResult WorkerTask::DescribeRun() const {
  const TrainingSpec& training = options_.training;
  TrainingResult result;
  result.model = training.model().name();
  result.mode = options_.cluster.empty() ? "standalone" : "cluster";
  result.replication = ReplicationName(training.replication());
  result.replication_settings = ReplicationNumbers(training.replication());
  result.optimizer = training.optimizer().name();
  result.device = std::string(opened_.towers.front().backend->name());
  for (const TowerParts& tower : opened_.towers) {
    result.devices.push_back(tower.device);
  }
  result.num_ps = options_.cluster.num_ps();
  result.num_workers = static_cast<int>(tasks_.size());
  result.compute_threads = options_.compute_threads;
  result.seed = training.seed();
  result.batch_size = shape_.batch_size;
  result.accumulate_batches = shape_.accumulate_batches;
  result.rows_per_push = shape_.worker_rows();
  result.codec = training.gradient().codec();
  result.error_feedback = training.gradient().error_feedback();
  const ExchangedBytes bytes = exchange_->bytes();
  result.gradient_bytes_sent = bytes.sent;
  result.gradient_bytes_float32 = bytes.sent_float32;
  result.pull_codec = training.pull().codec();
  result.pull_bytes_received = bytes.received;
  result.pull_bytes_float32 = bytes.received_float32;
  result.muster_version = std::string(kMusterVersion);
  return result;
}

void WorkerTask::AddSpeed(TrainingResult* result) const {
  result->examples = session_->job_state().examples();
  for (const WorkerState& state : session_->job_state().workers()) {
    TrainingResult::Worker worker;
    worker.task = TaskName(state.sender().task());
    worker.steps = state.steps();
    worker.examples = state.examples();
    worker.dropped_steps = state.dropped_steps();
    result->dropped_steps += state.dropped_steps();
    if (state.active_s() > 0) {
      worker.steps_per_s = state.active_steps() / state.active_s();
    }
    const double pushes = static_cast<double>(state.staleness_count());
    if (pushes > 0) worker.mean_staleness = state.staleness_sum() / pushes;
    result->workers.push_back(worker);
  }
  const double train_s = absl::ToDoubleSeconds(session_->stopped_time() -
                                               session_->entered_time());
  if (train_s > 0) {
    result->steps_per_s = (result->global_step - result->start_step) / train_s;
    // A step of synchronous replication has the rows of several workers.
    result->examples_per_s =
        (result->examples - session_->first_examples()) / train_s;
  }
  result->wall_s =
      absl::ToDoubleSeconds(options_.clock->Now() - options_.start_time);
  result->time_to_first_step_s =
      absl::ToDoubleSeconds(session_->first_step_time() - options_.start_time);
}

absl::Status WorkerTask::WriteResult(const EndRecord& end) const {
  const std::optional<EvaluationResult> evaluated = hooks_->evaluated();
  if (options_.train_dir.empty() || !evaluated.has_value()) {
    return absl::OkStatus();
  }
  TrainingResult result = DescribeRun();
  result.test_accuracy = evaluated->accuracy;
  result.test_loss = evaluated->loss;
  result.test_examples = evaluated->examples;
  result.final_loss = session_->last_loss();
  result.global_step = end.global_step;
  result.start_step = session_->first_global_step();
  result.stop_reason = end.stop_reason;
  result.checkpoint = hooks_->newest_checkpoint();
  AddSpeed(&result);
  const std::string path = absl::StrCat(options_.train_dir, "/result.json");
  RETURN_IF_ERROR(OfFile(WriteFileAtomically(path, ResultJson(result))));
  options_.say(/*is_error=*/false, absl::StrCat("wrote ", path));
  return absl::OkStatus();
}

}  // namespace muster
