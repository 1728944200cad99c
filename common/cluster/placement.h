#ifndef COMMON_CLUSTER_PLACEMENT_H_
#define COMMON_CLUSTER_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/tensor.pb.h"

namespace muster {

// A run of elements of a flattened tensor, and the ps task that holds it.
struct TensorExtent {
  int ps = 0;
  int64_t begin = 0;
  int64_t length = 0;

  int64_t end() const { return begin + length; }
  bool IsAllOf(int64_t elements) const {
    return begin == 0 && length == elements;
  }
  friend bool operator==(const TensorExtent& a, const TensorExtent& b) {
    return a.ps == b.ps && a.begin == b.begin && a.length == b.length;
  }
};

// The extents of each tensor, at least one, in creation order of the tensors
// and ascending within one:
//   Placement placement = {{{/*ps=*/0, 0, 65536}, {/*ps=*/1, 65536, 1000}}};
using Placement = std::vector<std::vector<TensorExtent>>;

// Bytes of the tensor's values. Errors: InvalidArgument naming the tensor for
// a bad shape or data type.
absl::StatusOr<int64_t> TensorBytes(const TensorDef& tensor);

// Makes a placement of one extent a tensor; `tasks` are the ps tasks. Errors:
// InvalidArgument for another number of tasks, or a tensor with a bad shape.
absl::StatusOr<Placement> PlaceWhole(absl::Span<const TensorDef> tensors,
                                     absl::Span<const int> tasks);

// Checks that the extents are on ps tasks in [0, num_ps), cover each tensor
// exactly and in ascending order, and are cut at multiples of
// `block_elements`; none but that of an empty tensor is empty. REQUIRES:
// block_elements > 0. Errors: InvalidArgument naming the tensor.
absl::Status CheckPlacement(absl::Span<const TensorDef> tensors,
                            const Placement& placement, int num_ps,
                            int64_t block_elements);

}  // namespace muster

#endif  // COMMON_CLUSTER_PLACEMENT_H_
