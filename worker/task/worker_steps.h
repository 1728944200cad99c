#ifndef WORKER_TASK_WORKER_STEPS_H_
#define WORKER_TASK_WORKER_STEPS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/link.h"
#include "common/rpc/parameter_link.h"
#include "proto/coordination_service.pb.h"
#include "worker/client/link/shard_link.h"
#include "worker/client/parameter_client.h"
#include "worker/executor/device_update.h"
#include "worker/session/job_goal.h"
#include "worker/step/step_exchange.h"
#include "worker/step/train_loop.h"
#include "worker/task/placed_training.h"
#include "worker/task/worker_data.h"
#include "worker/task/worker_towers.h"

namespace muster {

// A worker that can make steps, with the stages that it was made from: the
// fourth stage of a WorkerTask.
class WorkerSteps {
 public:
  // The stages before outlive this. Errors: those of FindCodec,
  // ParameterClient::SetModel, PlaceUpdates, GradientClipper::Create and
  // TrainLoop::Create.
  static absl::StatusOr<std::unique_ptr<WorkerSteps>> Create(
      const PlacedTraining* placed, const WorkerTowers* towers,
      const WorkerData* data, WorkerLinks links);

  const PlacedTraining& placed() const { return placed_; }
  const WorkerTowers& towers() const { return towers_; }
  const WorkerData& data() const { return data_; }

  Link* coordination() const { return coordination_.get(); }
  ParameterClient* client() const { return client_.get(); }
  TrainLoop* loop() const { return loop_.get(); }
  // What the job trains for, with the rows of an epoch and of an update.
  JobGoal goal() const;
  ExchangedBytes bytes() const { return exchange_->bytes(); }
  // Nothing but in all-reduce.
  Traffic MeasuredTraffic() const;

 private:
  WorkerSteps(const PlacedTraining& placed, const WorkerTowers& towers,
              const WorkerData& data)
      : placed_(placed), towers_(towers), data_(data) {}

  absl::Status CreateClient(std::vector<std::unique_ptr<ParameterLink>> links);
  // Lets the device update the parameters, where that can be; else null.
  absl::StatusOr<DeviceUpdate*> PlaceParameterUpdates() const;
  void CreateExchange(DeviceUpdate* update, bool changes_gradients);
  absl::Status CreateLoop(DeviceUpdate* update);

  const PlacedTraining& placed_;
  const WorkerTowers& towers_;
  const WorkerData& data_;

  std::unique_ptr<Link> coordination_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<StepExchange> exchange_;
  std::unique_ptr<TrainLoop> loop_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_STEPS_H_
