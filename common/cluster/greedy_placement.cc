// greedy: each tensor, or piece of one, in creation order, goes to the ps task
// with the fewest bytes so far, the lowest index if several have; as
// tf.contrib.training.GreedyLoadBalancingStrategy with byte_size_load_fn.
#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/status_macros.h"
#include "common/cluster/partition.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"

namespace muster {
namespace {

class GreedyPlacement : public PlacementStrategy {
 public:
  absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
                                  const PartitionSpec& partition,
                                  int num_ps) const override {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                     CutTensors(tensors, partition, num_ps));
    // As double: the sum of many allowed sizes may not fit in int64_t.
    std::vector<double> load(static_cast<size_t>(num_ps), 0.0);
    std::vector<int> tasks;
    for (const Piece& piece : pieces) {
      const auto least = std::min_element(load.begin(), load.end());
      *least += static_cast<double>(piece.bytes);
      tasks.push_back(static_cast<int>(least - load.begin()));
    }
    return PlacePieces(tensors.size(), pieces, tasks);
  }
};

absl::StatusOr<std::unique_ptr<PlacementStrategy>> Create(
    const PlacementSpec& spec) {
  static_cast<void>(spec);
  return std::make_unique<GreedyPlacement>();
}

[[maybe_unused]] const bool kRegistered = PlacementRegistry::Register(
    "greedy", {&Create, /*takes_pins=*/false, /*takes_seed=*/false,
               "each to the ps task with the fewest bytes so far"});

}  // namespace
}  // namespace muster
