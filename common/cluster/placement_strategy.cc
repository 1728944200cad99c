#include "common/cluster/placement_strategy.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/partition.h"

namespace muster {

absl::StatusOr<std::unique_ptr<PlacementStrategy>> CreatePlacementStrategy(
    const PlacementSpec& spec) {
  const std::string name =
      spec.strategy().empty() ? "round_robin" : spec.strategy();
  ASSIGN_OR_RETURN(const PlacementEntry entry, PlacementRegistry::Find(name));
  const bool has_pins = spec.pin_size() > 0 || !spec.fallback().empty();
  if (has_pins && !entry.takes_pins) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement.pin and placement.fallback are for the "
                     "strategy 'pinned', found strategy '",
                     name, "'"));
  }
  if (spec.seed() != 0 && !entry.takes_seed) {
    return absl::InvalidArgumentError(
        absl::StrCat("placement.seed is for the strategy 'random', found "
                     "strategy '",
                     name, "'"));
  }
  RETURN_IF_ERROR(CheckPartition(spec.partition()));
  return entry.create(spec);
}

absl::StatusOr<Placement> PlaceTensors(absl::Span<const TensorDef> tensors,
                                       int num_ps, const PlacementSpec& spec) {
  if (num_ps <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "placing parameters needs at least one ps task, found ", num_ps));
  }
  for (const TensorDef& tensor : tensors) {
    RETURN_IF_ERROR(TensorBytes(tensor).status());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<PlacementStrategy> strategy,
                   CreatePlacementStrategy(spec));
  RETURN_IF_ERROR(CheckPartsFit(tensors, spec.partition()));
  return strategy->Place(tensors, spec.partition(), num_ps);
}

}  // namespace muster
