// random: each tensor, or piece of one, goes to a ps task that the seed
// chooses, as tf.contrib.training.RandomStrategy: for models of so many
// tensors that chance evens them out.
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/split_mix64.h"
#include "common/base/status_macros.h"
#include "common/cluster/partition.h"
#include "common/cluster/placement.h"
#include "common/cluster/placement_strategy.h"

namespace muster {
namespace {

class RandomPlacement : public PlacementStrategy {
 public:
  explicit RandomPlacement(int64_t seed) : seed_(seed) {}

  absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
                                  const PartitionSpec& partition,
                                  int num_ps) const override {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                     CutTensors(tensors, partition, num_ps));
    // Mixed first: the numbers of seeds that are neighbours would be, too.
    uint64_t state = SplitMix64(static_cast<uint64_t>(seed_));
    std::vector<int> tasks;
    for (size_t i = 0; i < pieces.size(); ++i) {
      state += kSplitMix64Step;
      tasks.push_back(
          static_cast<int>(SplitMix64(state) % static_cast<uint64_t>(num_ps)));
    }
    return PlacePieces(tensors.size(), pieces, tasks);
  }

 private:
  const int64_t seed_;
};

absl::StatusOr<std::unique_ptr<PlacementStrategy>> Create(
    const PlacementSpec& spec) {
  return std::make_unique<RandomPlacement>(spec.seed());
}

[[maybe_unused]] const bool kRegistered = PlacementRegistry::Register(
    "random", {&Create, /*takes_pins=*/false, /*takes_seed=*/true,
               "each to a ps task that placement.seed chooses"});

}  // namespace
}  // namespace muster
