#ifndef WORKER_TASK_WORKER_TASK_H_
#define WORKER_TASK_WORKER_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/task_id.h"
#include "common/optimizer/update_rule.h"
#include "common/rpc/link.h"
#include "common/rpc/parameter_link.h"
#include "common/summary/event_file_writer.h"
#include "proto/coordination_service.pb.h"
#include "proto/data_schema.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/checkpoint/run_schema.h"
#include "worker/client/link/shard_link.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/compiled_model.h"
#include "worker/executor/device_update.h"
#include "worker/hook/summary_hooks.h"
#include "worker/input/bad_records.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/stream/example_stream.h"
#include "worker/session/training_session.h"
#include "worker/step/step_exchange.h"
#include "worker/step/train_loop.h"
#include "worker/task/chief_parts.h"
#include "worker/task/health_server.h"
#include "worker/task/result_file.h"
#include "worker/task/session_hooks.h"
#include "worker/task/worker_options.h"
#include "worker/tower/batch_plan.h"
#include "worker/tower/tower_group.h"
#include "worker/training/placed_model.h"
#include "worker/training/training_parts.h"

namespace muster {

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
  void RequestStop(int signal);

 private:
  explicit WorkerTask(WorkerOptions options);

  bool is_chief() const { return options_.self == chief_task_; }
  absl::Status CreateParts(WorkerLinks links);
  absl::Status CreateTowers();
  absl::Status OpenTestDevices(const TowerSetup& setup);
  absl::Status CreateData();
  // Fits the learning rate to the rows of an update and to the length of the
  // training, before anything else sees the optimizer.
  absl::Status FitOptimizer();
  absl::Status CreateModel();
  absl::Status CreateClient(std::vector<std::unique_ptr<ParameterLink>> links);
  // Lets the device update the parameters, where that can be.
  absl::Status PlaceParameterUpdates();
  absl::Status CreateLoop();
  void CreateExchange(bool changes_gradients);
  absl::Status CreateChiefParts();
  absl::Status CreateHealth();
  // Null for no evaluator.
  Evaluation::Evaluate EvaluateWith(Evaluator* evaluator);
  absl::StatusOr<SummaryParts> MakeSummaryParts();
  absl::Status CreateHooks();
  absl::StatusOr<Profiler::Options> ProfileOptions() const;
  void CreateSession();
  // As SessionMachine::Options.finished.
  std::string FinishedBefore(const JobGoal& goal) const;
  TrainingSession::Options SessionOptions() const;
  int WorkerIndex() const;
  // The training half's; 0: it is a stream.
  int64_t num_examples() const;
  // Warns of what --init_from was trained to read, where it is not `now`.
  void WarnOfOtherSource(const DataSchema& now) const;
  // Leaves validation_set_ and test_set_ null where there is no such half.
  absl::Status OpenEvaluatedHalves(std::shared_ptr<const DataSchema> run);
  // Returns its schema.
  absl::StatusOr<DataSchema> OpenTrainingHalf(
      const std::shared_ptr<const DataSchema>& run);
  // The run that goes on; its schema is null if it is new, or does not say.
  absl::StatusOr<RunSchema> FindSchema() const;
  // Says what was found.
  void SayData(const std::vector<std::string>& files,
               const std::vector<std::string>& remarks) const;
  // Updates of the parameters in one pass over the training set; 0: not known.
  int64_t EpochUpdates() const;
  std::vector<std::string> TowerDevices() const;
  std::string TrainingText() const;
  void SayTowers() const;
  void SayDevicePlacement() const;
  void SayLines(absl::string_view text) const;
  void SayPlacement() const;
  // Nothing but in all-reduce.
  Traffic MeasuredTraffic() const;
  JobState StateAtEnd() const;
  TrainingResult DescribeRun() const;
  // Keeps how the run has ended, for those who come later.
  void MarkFinished(const std::string& folder, const EndRecord& end) const;
  absl::Status WriteResult(const EndRecord& end) const;
  // Into --train_dir; the chief says if that takes long.
  absl::Status WriteFile(const std::string& path,
                         const std::string& content) const;

  // The training's rates are scaled when the towers are known, before anybody
  // reads them; then constant.
  WorkerOptions options_;
  // As it was given, before it is fitted to the cluster.
  TrainingSpec given_training_;
  // FinishedBefore of its own goal.
  std::string finished_before_;
  // The tasks of options_.cluster.
  TaskId chief_task_;
  std::vector<TaskId> tasks_;
  std::vector<std::string> ps_addresses_;

  BatchPlan shape_;
  // The shards' rule, as FitOptimizer leaves it; update_'s, too.
  std::unique_ptr<UpdateRule> update_rule_;
  OpenedTowers opened_;
  // The model's update; null if the shards update the parameters.
  DeviceUpdate* update_ = nullptr;
  std::unique_ptr<TowerGroup> towers_;
  // Devices with all compute threads; none if the first tower's have them, or
  // their memory.
  ReplicaDevices test_devices_;
  std::unique_ptr<CompiledModel> test_model_;
  // Null: the rows are those of open_stream_.
  std::unique_ptr<DataSet> data_set_;
  OpenStream open_stream_;
  std::unique_ptr<DataSet> validation_set_;
  std::unique_ptr<DataSet> test_set_;
  // Null: a bad record is an error.
  std::unique_ptr<BadRecords> bad_records_;
  // What the data of the run are; the chief's has all halves.
  DataSchema schema_;
  PlacedModel placed_;

  std::unique_ptr<HealthServer> health_;

  std::unique_ptr<Link> coordination_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
  // Null but in the chief.
  std::unique_ptr<ChiefParts> chief_;

  // Null if nothing is written for TensorBoard.
  std::unique_ptr<EventFileWriter> summaries_;
  std::unique_ptr<SessionHooks> hooks_;
  std::unique_ptr<TrainingSession> session_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_TASK_H_
