#ifndef COMMON_CLUSTER_PLACEMENT_STRATEGY_H_
#define COMMON_CLUSTER_PLACEMENT_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/cluster/placement.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"

namespace muster {

// Decides which ps task holds which parameter, or piece of one. Immutable,
// thread-safe, and a function of its arguments only: every worker comes to the
// same answer.
class PlacementStrategy {
 public:
  virtual ~PlacementStrategy() = default;

  // Cuts the tensors (CutTensors) and returns where on ps tasks in [0, num_ps)
  // their pieces are to be.
  // REQUIRES: num_ps > 0, tensors that TensorBytes accepts and a partition that
  // CheckPartition does. Errors: InvalidArgument if the strategy's settings do
  // not fit num_ps; those of CutTensors.
  virtual absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
                                          const PartitionSpec& partition,
                                          int num_ps) const = 0;
};

struct PlacementTag {
  static constexpr char kKind[] = "placement strategy";
};

struct PlacementEntry {
  std::function<absl::StatusOr<std::unique_ptr<PlacementStrategy>>(
      const PlacementSpec&)>
      create;
  // May the spec have `pin` and `fallback`?
  bool takes_pins = false;
  // May it have `seed`?
  bool takes_seed = false;
  // One line for `musterctl list`.
  std::string help;
};

// Filled by the files in placements.bzl.
using PlacementRegistry = Registry<PlacementTag, PlacementEntry>;

// Makes the strategy that `spec` names; "" is round_robin. Errors: NotFound
// for an unknown name, InvalidArgument for settings that the strategy does not
// have or cannot use, or a partition that CheckPartition refuses.
absl::StatusOr<std::unique_ptr<PlacementStrategy>> CreatePlacementStrategy(
    const PlacementSpec& spec);

// Checks the tensors, then cuts and places them. Errors: InvalidArgument,
// NotFound.
absl::StatusOr<Placement> PlaceTensors(absl::Span<const TensorDef> tensors,
                                       int num_ps, const PlacementSpec& spec);

}  // namespace muster

#endif  // COMMON_CLUSTER_PLACEMENT_STRATEGY_H_
