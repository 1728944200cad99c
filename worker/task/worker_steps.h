#ifndef WORKER_TASK_WORKER_STEPS_H_
#define WORKER_TASK_WORKER_STEPS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/client/link/shard_link.h"
#include "worker/executor/device_update.h"
#include "worker/step/step_exchange.h"
#include "worker/step/train_loop.h"
#include "worker/task/placed_training.h"
#include "worker/task/step_stage.h"
#include "worker/task/worker_data.h"
#include "worker/task/worker_towers.h"

namespace muster {

// The steps of a model of layers: the fourth stage of a WorkerTask.
class WorkerSteps : public StepStage {
 public:
  // The stages before outlive this. Errors: those of StepStage::Connect,
  // PlaceUpdates, GradientClipper::Create and TrainLoop::Create.
  static absl::StatusOr<std::unique_ptr<WorkerSteps>> Create(
      const PlacedTraining* placed, const WorkerTowers* towers,
      const WorkerData* data, WorkerLinks links);

  TrainLoop* runner() const override { return loop_.get(); }
  absl::StatusOr<std::vector<absl::Span<float>>> MakeInitialValues()
      const override;

 private:
  WorkerSteps(const PlacedTraining& placed, const WorkerTowers& towers,
              const WorkerData& data);

  // Lets the device update the parameters, where that can be; else null.
  absl::StatusOr<DeviceUpdate*> PlaceParameterUpdates() const;
  std::unique_ptr<StepExchange> MakeExchange(DeviceUpdate* update,
                                             bool changes_gradients) const;
  absl::Status CreateLoop(DeviceUpdate* update);

  const WorkerTowers& towers_;
  const WorkerData& data_;

  std::unique_ptr<TrainLoop> loop_;
};

}  // namespace muster

#endif  // WORKER_TASK_WORKER_STEPS_H_
