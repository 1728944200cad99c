#ifndef WORKER_TRAINING_UPDATE_PLACE_H_
#define WORKER_TRAINING_UPDATE_PLACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/reporter.h"
#include "common/optimizer/update_rule.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/executor/device_update.h"
#include "worker/tower/batch_plan.h"
#include "worker/training/training_parts.h"

namespace muster {

// The circumstances that compute.update_on_device depends on, besides the
// optimizer's rule.
struct UpdateSite {
  // Whether the shard is in this process.
  bool is_standalone = false;
  BatchPlan shape;
  // Whether the first tower's device has memory of its own.
  bool has_device = false;
  // Whether its model is divided: its gradients come together on the host.
  bool is_divided = false;
  absl::Span<const TensorDef> tensors;
};

// Why the shard has to update the parameters: one clause for people, naming the
// training's field where there is one. "": the device can.
std::string WhyShardUpdates(const TrainingSpec& training,
                            const UpdateSite& site);

// Lets the tower's device update the parameters by `rule`, which outlives the
// tower, where that can be; else null. Sets the device's fields of `site`.
// `reporter` gets a line if the device does, or if the training asks for it and
// it cannot. Errors: those of Backend::CreateRule and UpdateOnDevice.
absl::StatusOr<DeviceUpdate*> PlaceUpdates(const TrainingSpec& training,
                                           UpdateSite site,
                                           const TowerParts& tower,
                                           UpdateRule* rule,
                                           const Reporter& reporter);

}  // namespace muster

#endif  // WORKER_TRAINING_UPDATE_PLACE_H_
