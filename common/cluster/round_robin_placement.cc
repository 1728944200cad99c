// round_robin: tensor i goes to ps task i modulo the number of ps tasks, in
// creation order; what TensorFlow's tf.train.replica_device_setter does by
// default (tensorflow/python/training/device_setter.py, _RoundRobinStrategy).
#include <memory>
#include <vector>

#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"

namespace muster {
namespace {

class RoundRobinPlacement : public PlacementStrategy {
 public:
  absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
                                  int num_ps) const override {
    std::vector<int> tasks;
    for (size_t i = 0; i < tensors.size(); ++i) {
      tasks.push_back(static_cast<int>(i % static_cast<size_t>(num_ps)));
    }
    return PlaceWhole(tensors, tasks);
  }
};

absl::StatusOr<std::unique_ptr<PlacementStrategy>> Create(
    const PlacementSpec& spec) {
  static_cast<void>(spec);
  return std::make_unique<RoundRobinPlacement>();
}

[[maybe_unused]] const bool kRegistered = PlacementRegistry::Register(
    "round_robin",
    {&Create, /*takes_pins=*/false, "by creation order over the ps tasks"});

}  // namespace
}  // namespace muster
