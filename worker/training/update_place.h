#ifndef WORKER_TRAINING_UPDATE_PLACE_H_
#define WORKER_TRAINING_UPDATE_PLACE_H_

#include <string>

#include "absl/types/span.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"
#include "worker/tower/batch_plan.h"

namespace muster {

// The circumstances that compute.update_on_device depends on, besides the
// optimizer's rule.
struct UpdateSite {
  // Whether the shard is in this process.
  bool is_standalone = false;
  BatchPlan shape;
  // Whether the first tower's device has memory of its own.
  bool has_device = false;
  absl::Span<const TensorDef> tensors;
};

// Why the shard has to update the parameters: one clause for people, naming the
// training's field where there is one. "": the device can.
std::string WhyShardUpdates(const TrainingSpec& training,
                            const UpdateSite& site);

}  // namespace muster

#endif  // WORKER_TRAINING_UPDATE_PLACE_H_
