#ifndef WORKER_TASK_WORKER_TOWERS_H_
#define WORKER_TASK_WORKER_TOWERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"
#include "worker/executor/compiled_model.h"
#include "worker/task/worker_job.h"
#include "worker/tower/batch_plan.h"
#include "worker/tower/tower_group.h"
#include "worker/training/replica_devices.h"
#include "worker/training/training_parts.h"

namespace muster {

// A worker's devices, and the model compiled for each: the first stage of a
// WorkerTask.
class WorkerTowers {
 public:
  // Reports the devices, and with options.log_device_placement the plans.
  // Errors: those of ChooseDevices, ResolveBatchPlan, PlaceLayers and
  // OpenTowers.
  static absl::StatusOr<std::unique_ptr<WorkerTowers>> Create(
      const WorkerJob& job);

  const BatchPlan& shape() const { return shape_; }
  const TowerParts& first() const { return opened_.towers.front(); }
  TowerGroup* group() const { return group_.get(); }
  CompiledModel& model() const { return group_->model(); }
  // Each tower's devices, as ReplicaDevices::Title.
  std::vector<std::string> titles() const;
  // The device of each tower that is its own, "cpu:0".
  std::vector<std::string> own_devices() const;

  // The model that evaluates, which the towers outlive. Errors: those of
  // CompileTestModel.
  absl::StatusOr<std::unique_ptr<CompiledModel>> CompileForTest(
      const TrainingSpec& training) const;

 private:
  WorkerTowers() = default;

  absl::Status Open(const WorkerJob& job, const TowerSetup& setup);
  absl::Status OpenTestDevices(const WorkerJob& job, const TowerSetup& setup);
  void ReportTowers(const WorkerOptions& options) const;
  void ReportPlans(const Reporter& reporter) const;

  BatchPlan shape_;
  OpenedTowers opened_;
  std::unique_ptr<TowerGroup> group_;
  // Devices with all compute threads; none if the first tower's have them, or
  // their memory.
  ReplicaDevices test_devices_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_TOWERS_H_
