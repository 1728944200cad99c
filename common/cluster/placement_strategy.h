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

// Decides which ps task holds which parameter. Immutable, thread-safe, and a
// function of its arguments only: every worker comes to the same answer.
class PlacementStrategy {
 public:
  virtual ~PlacementStrategy() = default;

  // Returns a placement on ps tasks in [0, num_ps).
  // REQUIRES: num_ps > 0 and tensors that TensorBytes accepts.
  // Errors: InvalidArgument if the strategy's settings do not fit num_ps.
  virtual absl::StatusOr<Placement> Place(absl::Span<const TensorDef> tensors,
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
  // One line for `worker --list`.
  std::string help;
};

// Filled by the files in placements.bzl.
using PlacementRegistry = Registry<PlacementTag, PlacementEntry>;

// Makes the strategy that `spec` names; "" is round_robin. Errors: NotFound
// for an unknown name, InvalidArgument for settings that the strategy does not
// have or cannot use.
absl::StatusOr<std::unique_ptr<PlacementStrategy>> CreatePlacementStrategy(
    const PlacementSpec& spec);

// Checks the tensors, then places them. Errors: InvalidArgument, NotFound.
absl::StatusOr<Placement> PlaceTensors(absl::Span<const TensorDef> tensors,
                                       int num_ps, const PlacementSpec& spec);

// Bytes of the tensor's values. Errors: InvalidArgument naming the tensor for
// a bad shape or data type.
absl::StatusOr<int64_t> TensorBytes(const TensorDef& tensor);

}  // namespace muster

#endif  // COMMON_CLUSTER_PLACEMENT_STRATEGY_H_
