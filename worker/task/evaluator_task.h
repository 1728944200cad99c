#ifndef WORKER_TASK_EVALUATOR_TASK_H_
#define WORKER_TASK_EVALUATOR_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/write_watch.h"
#include "common/cluster/cluster_spec.h"
#include "common/process/stop_latch.h"
#include "common/rpc/credentials.h"
#include "common/summary/event_file_writer.h"
#include "proto/data_schema.pb.h"
#include "proto/training.pb.h"
#include "worker/hook/evaluation.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"
#include "worker/task/health_server.h"
#include "worker/task/saved_model.h"
#include "worker/tower/device_names.h"

namespace muster {

// The command line of an evaluator, read and checked.
struct EvaluatorOptions {
  TaskId self;
  ClusterSpec cluster;
  // The namespace of the job whose end is its own.
  std::string job_namespace;
  // The training, checked.
  TrainingSpec training;
  // The chief's folder.
  std::string train_dir;
  // The choice of one device.
  DeviceChoice device_choice;
  // The same as in WorkerOptions.
  bool log_device_placement = false;
  int compute_threads = 1;
  // The longest time that ps task 0 may be away.
  absl::Duration max_wait = absl::Hours(2);
  // The own health service; "" for none.
  std::string listen_address;
  // The credentials of its watch and of its own server.
  TaskCredentials credentials = InsecureCredentials();
  // A line for the operator, from any thread.
  Reporter reporter;
  // As ProgressOutput's.
  std::function<void(absl::string_view text)> show_live;
  // The process's start number: random and not 0.
  uint64_t incarnation = 1;
  // Both outlive the task. The latch ends Create and Run.
  const Clock* clock = nullptr;
  StopLatch* latch = nullptr;
};

// The evaluator process: evaluates each checkpoint that the chief saves on the
// validation half, or without one on the test half. It reads files and asks ps
// task 0 whether the job is done, nothing more: no shard, no worker and no
// quorum knows of it, and its death disturbs nobody. If ps task 0 has gone, a
// result.json that was not there at the start says that the job is done, as
// does a run that has reached this task's own goal. It writes
// train_dir/summaries/evaluator and train_dir/evaluator.json (the newest
// result). Run once.
class EvaluatorTask {
 public:
  // Errors: what is wrong with the configuration or the data, by name;
  // Cancelled if the latch was stopped meanwhile.
  static absl::StatusOr<std::unique_ptr<EvaluatorTask>> Create(
      EvaluatorOptions options);
  ~EvaluatorTask();

  // Evaluates until the job is done; returns the exit code.
  int Run();

 private:
  explicit EvaluatorTask(EvaluatorOptions options);

  absl::Status CreateParts();
  absl::Status CreateModel();
  // Opens the half at once, where there is a run; else with its first
  // checkpoint, which says what the data are.
  absl::Status OpenAtStart();
  // Opens it as `run` says, unless it is open so.
  absl::Status OpenHalfBy(std::shared_ptr<const DataSchema> run);
  // The half that is evaluated.
  Split half() const;
  // Ends the task.
  void EndByData(const absl::Status& status);
  absl::StatusOr<EvaluationResult> Evaluate(const CheckpointReader& reader);
  void Report(const CheckpointReader& reader, const EvaluationResult& result);
  // The text of the chief's result.json.
  absl::StatusOr<std::string> ReadResult() const;
  // The chief's run is as far as this task's training wants it.
  bool WasFinishedBefore() const;
  bool interrupted() const;

  const EvaluatorOptions options_;
  const std::unique_ptr<FileSystem> file_system_;
  std::unique_ptr<WriteWatch> write_watch_;
  std::unique_ptr<HealthServer> health_;
  std::unique_ptr<SavedModel> saved_;
  // Null until a checkpoint says what the data are.
  std::unique_ptr<DataSet> data_set_;
  // The schema that it was opened by; null: none.
  std::shared_ptr<const DataSchema> opened_by_;
  Batch batch_;
  // Null: a bad record is an error.
  std::unique_ptr<BadRecords> bad_records_;
  // Null if the training spec wants no summaries.
  std::unique_ptr<EventFileWriter> summaries_;
  // The step of the newest point of the curves; -1: none of this process.
  int64_t last_step_ = -1;
};

}  // namespace muster

#endif  // WORKER_TASK_EVALUATOR_TASK_H_
