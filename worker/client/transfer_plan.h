#ifndef WORKER_CLIENT_TRANSFER_PLAN_H_
#define WORKER_CLIENT_TRANSFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/cluster/placement.h"
#include "proto/tensor.pb.h"

namespace muster {

// One part of a transfer: the part'th of those that go to or come from a shard.
struct PartId {
  int shard = 0;
  int part = 0;
};

// A run of whole blocks of one tensor.
struct PlannedSlice {
  int tensor = 0;  // index in creation order
  int64_t offset = 0;
  int64_t length = 0;  // in elements
};

// The slices that one message carries; of frozen tensors alone, or of others.
struct PlannedPart {
  std::vector<PlannedSlice> slices;
  int64_t bytes = 0;
  // Its number among those of its shard that a push has; -1: it is frozen, and
  // only pulled.
  int pushed_as = -1;

  bool is_pushed() const { return pushed_as >= 0; }
};

// How a whole model is cut into parts.
struct TransferPlan {
  // [shard][part]. A shard without tensors has no parts.
  std::vector<std::vector<PlannedPart>> parts;
  // By shard: how many of its parts a push has.
  std::vector<int> pushed_parts;
  // By tensor: the part of each of its slices.
  std::vector<std::vector<PartId>> parts_of;
};

// Cuts the tensors into parts of at most max_part_bytes[shard] (a block or a
// whole small tensor may be more; so may all parts of a shard that would have
// more than kMaxStepParts): in creation order, small tensors share a part,
// large ones are split between two blocks, and frozen ones have parts of their
// own. The same arguments give the same plan. Errors: InvalidArgument naming
// the tensor for a bad shape, data type or placement (CheckPlacement).
absl::StatusOr<TransferPlan> PlanTransfer(
    absl::Span<const TensorDef> tensors, const Placement& placement,
    absl::Span<const int64_t> max_part_bytes);

}  // namespace muster

#endif  // WORKER_CLIENT_TRANSFER_PLAN_H_
