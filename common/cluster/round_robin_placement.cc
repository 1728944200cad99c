// round_robin: tensors, or pieces of them, go from ps task to ps task, in
// creation order; what TensorFlow's tf.train.replica_device_setter does by
// default (tensorflow/python/training/device_setter.py, _RoundRobinStrategy).
// The partition says whose turn it is: `auto` passes over full ps tasks.
#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/cluster/partition.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"

namespace muster {
namespace {

class RoundRobinPlacement : public PlacementStrategy {
 public:
  absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
                                  const PartitionSpec& partition,
                                  int num_ps) const override {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                     CutTensors(tensors, partition, num_ps));
    std::vector<int> tasks;
    for (const Piece& piece : pieces) tasks.push_back(piece.turn);
    return PlacePieces(tensors.size(), pieces, tasks);
  }
};

absl::StatusOr<std::unique_ptr<PlacementStrategy>> Create(
    const PlacementSpec& spec) {
  static_cast<void>(spec);
  return std::make_unique<RoundRobinPlacement>();
}

[[maybe_unused]] const bool kRegistered = PlacementRegistry::Register(
    "round_robin", {&Create, /*takes_pins=*/false, /*takes_seed=*/false,
                    "by creation order over the ps tasks"});

}  // namespace
}  // namespace muster
