#ifndef WORKER_TASK_WORKER_TASK_H_
#define WORKER_TASK_WORKER_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/train_dir_lock.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/optimizer/update_rule.h"
#include "common/process/stop_latch.h"
#include "common/rpc/coordination_link.h"
#include "common/rpc/parameter_link.h"
#include "common/summary/event_file_writer.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/backend/backend.h"
#include "worker/checkpoint/initial_weights.h"
#include "worker/checkpoint/model_loader.h"
#include "worker/checkpoint/model_saver.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/executor/device_update.h"
#include "worker/hook/progress.h"
#include "worker/hook/summary_hooks.h"
#include "worker/input/data_set.h"
#include "worker/session/round_pauser.h"
#include "worker/session/training_session.h"
#include "worker/step/step_exchange.h"
#include "worker/step/train_loop.h"
#include "worker/task/evaluator.h"
#include "worker/task/health_server.h"
#include "worker/task/result_file.h"
#include "worker/task/session_hooks.h"
#include "worker/tower/batch_plan.h"
#include "worker/tower/computed_step.h"
#include "worker/tower/device_names.h"
#include "worker/tower/tower_group.h"
#include "worker/training/placed_model.h"
#include "worker/training/training_parts.h"

namespace muster {

struct WorkerOptions {
  TaskId self;
  // Empty: standalone, one ps in this process.
  ClusterSpec cluster;
  // Checked.
  TrainingSpec training;
  // StopSource of it, to be told.
  std::string stop_source = "the training";
  // "": nothing is saved or restored.
  std::string train_dir;
  // Weights that a new training starts from.
  InitialWeights::Options init;
  // One device a tower.
  DeviceChoice device_choice;
  // Say what computes each layer, and with how much memory.
  bool log_device_placement = false;
  // Of all towers together.
  int compute_threads = 1;
  absl::Duration max_wait = absl::Hours(2);
  // Own health service; "" for none.
  std::string listen_address;
  // To write a timeline of, into train_dir.
  ProfiledSteps profiled;
  Progress::Options progress;
  Progress::Write write_progress;
  // A line for the operator, from any thread.
  std::function<void(bool is_error, absl::string_view)> say;
  // Random and not 0.
  uint64_t incarnation = 1;
  // Both outlive the task. The latch ends Create where it waits.
  const Clock* clock = nullptr;
  StopLatch* latch = nullptr;
  // When the process started.
  absl::Time start_time;
};

// The ps tasks, wherever they are.
struct WorkerLinks {
  std::vector<std::unique_ptr<ParameterLink>> shards;
  std::unique_ptr<CoordinationLink> coordination;
};

// A worker or chief process, put together: device, model, data, client, hooks,
// session. Run once.
class WorkerTask {
 public:
  // Errors: what is wrong with the configuration or the data, by name;
  // Cancelled if the latch was stopped meanwhile.
  static absl::StatusOr<std::unique_ptr<WorkerTask>> Create(
      WorkerOptions options, WorkerLinks links);
  ~WorkerTask();

  // Trains; returns the exit code.
  int Run();

  // From any thread.
  void RequestStop(int signal) { session_->RequestStop(signal); }

 private:
  explicit WorkerTask(WorkerOptions options);

  bool is_chief() const { return options_.self == chief_task_; }
  absl::Status CreateParts(WorkerLinks links);
  absl::Status CreateTowers();
  absl::Status CreateData();
  // Fits the learning rate to the rows of an update and to the length of the
  // training, before anything else sees the optimizer.
  absl::Status FitOptimizer();
  absl::Status CreateModel();
  absl::Status CreateClient(std::vector<std::unique_ptr<ParameterLink>> links);
  // Lets the device update the parameters, where that can be.
  absl::Status PlaceUpdates();
  absl::Status CreateLoop();
  void CreateExchange(bool changes_gradients);
  absl::Status CreateChiefParts();
  absl::Status OpenTrainDir();
  absl::Status CreateLoader();
  absl::Status CreateSaver();
  absl::Status CreateHealth();
  SummaryParts MakeSummaryParts();
  absl::Status CreateHooks();
  absl::StatusOr<Profiler::Options> ProfileOptions() const;
  void CreateSession();
  TrainingSession::Options SessionOptions() const;
  int WorkerIndex() const;
  // Updates of the parameters in one pass over the training set.
  int64_t EpochUpdates() const;
  std::string TrainingText() const;
  void SayTowers() const;
  void SayDevicePlacement() const;
  void SayLines(absl::string_view text) const;
  void SayPlacement() const;
  TrainingResult DescribeRun() const;
  void AddSpeed(TrainingResult* result) const;
  absl::Status WriteResult(const EndRecord& end) const;

  // The training's rates are scaled when the towers are known, before anybody
  // reads them; then constant.
  WorkerOptions options_;
  // From options_.cluster.
  TaskId chief_task_;
  std::vector<TaskId> tasks_;
  std::vector<std::string> ps_addresses_;
  BackendOptions backend_options_;

  BatchPlan shape_;
  // The shards' rule, as FitOptimizer leaves it; update_'s, too.
  std::unique_ptr<UpdateRule> update_rule_;
  OpenedTowers opened_;
  // The model's; null if the shards update the parameters.
  DeviceUpdate* update_ = nullptr;
  std::unique_ptr<TowerGroup> towers_;
  // With all compute threads; null if the first tower's has them, or has none.
  std::unique_ptr<Backend> test_backend_;
  std::unique_ptr<CompiledModel> test_model_;
  std::unique_ptr<DataSet> data_set_;
  std::unique_ptr<DataSet> test_set_;
  PlacedModel placed_;

  std::unique_ptr<FileSystem> file_system_;
  std::unique_ptr<TrainDirLock> lock_;
  // Of the run, before this process; the chief's.
  absl::Duration trained_before_ = absl::ZeroDuration();
  std::unique_ptr<HealthServer> health_;

  std::unique_ptr<CoordinationLink> coordination_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
  std::unique_ptr<InitialWeights> weights_;
  std::unique_ptr<ModelLoader> loader_;
  // Null but in synchronous replication.
  std::unique_ptr<RoundPauser> rounds_;
  std::unique_ptr<ModelSaver> model_saver_;
  std::unique_ptr<Evaluator> evaluator_;

  // Null if nothing is written for TensorBoard.
  std::unique_ptr<EventFileWriter> summaries_;
  std::unique_ptr<SessionHooks> hooks_;
  std::unique_ptr<TrainingSession> session_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_TASK_H_
