#ifndef COMMON_CLUSTER_PLACEMENT_TABLE_H_
#define COMMON_CLUSTER_PLACEMENT_TABLE_H_

#include <string>

#include "absl/types/span.h"
#include "common/cluster/placement.h"
#include "proto/tensor.pb.h"

namespace muster {

// The table that the chief prints at start: a line an extent (the parameter's
// name and shape, bytes, task; the elements unless they are all), one line a ps
// task with its total, and the imbalance ratio. Every line ends in "\n".
// `placement` is PlaceTensors' result for `tensors` and `num_ps`.
std::string PlacementTable(absl::Span<const TensorDef> tensors,
                           const Placement& placement, int num_ps);

// The fullest task's bytes over the mean of all tasks: 1 is even, num_ps is
// everything on one. 1 if there are no bytes.
double ImbalanceRatio(absl::Span<const TensorDef> tensors,
                      const Placement& placement, int num_ps);

}  // namespace muster

#endif  // COMMON_CLUSTER_PLACEMENT_TABLE_H_
