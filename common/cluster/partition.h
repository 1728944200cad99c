#ifndef COMMON_CLUSTER_PARTITION_H_
#define COMMON_CLUSTER_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/cluster/placement.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"

namespace muster {

// A run of whole blocks of one tensor (its end may be a shorter block; all of
// it, if it is not cut), which is placed by itself.
struct Piece {
  int tensor = 0;  // index in creation order
  int64_t begin = 0;
  int64_t length = 0;  // in elements
  int64_t bytes = 0;
  // The ps task whose turn it is.
  int turn = 0;
};

// Checks the settings alone. Errors: InvalidArgument naming the field.
absl::Status CheckPartition(const PartitionSpec& spec);

// Checks that some tensor has as many blocks as a `fixed` partition has parts.
// Errors: InvalidArgument naming the largest tensor.
absl::Status CheckPartsFit(absl::Span<const TensorDef> tensors,
                           const PartitionSpec& spec);

// Cuts the tensors, in creation order, into runs of blocks that differ by at
// most one block in length; the same arguments give the same pieces. Turns go
// from ps task to ps task, but for `auto`, which follows their bytes:
//
// - The runs of a tensor of two blocks or more are each for another ps task,
//   the emptiest first, and the first ones are those with a block more.
// - Tensors of less are dealt in turn, past each ps task that has two blocks
//   more than the emptiest.
//
// So the fullest ps task has at most two blocks and the largest uncut tensor
// more than the emptiest, and than the mean. Proof, with b for a block, u for
// that tensor and l1 <= ... <= ln for bytes before: an uncut tensor makes no
// more than l1 + 2b + u of a ps task; runs add q blocks to all, one more to the
// first r < n, and take less than b from the last one, so that two that were
// apart by d are then apart by d or, if the lower one got less, by 2b at most.
// With fewer blocks than ps tasks, q is 0 and only the first ones get theirs.
//
// REQUIRES: num_ps > 0, CheckPartition is OK. Errors: InvalidArgument naming a
// tensor for a bad shape or data type, or for too many pieces.
absl::StatusOr<std::vector<Piece>> CutTensors(
    absl::Span<const TensorDef> tensors, const PartitionSpec& spec, int num_ps);

// The extents of `num_tensors` tensors of which pieces[i], as CutTensors gives
// them, is on ps task tasks[i]. Neighbours on one ps task are one extent.
// REQUIRES: as many tasks as pieces.
Placement PlacePieces(size_t num_tensors, absl::Span<const Piece> pieces,
                      absl::Span<const int> tasks);

}  // namespace muster

#endif  // COMMON_CLUSTER_PARTITION_H_
