#ifndef WORKER_TASK_COMPUTE_CORES_H_
#define WORKER_TASK_COMPUTE_CORES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "proto/cluster.pb.h"

namespace muster {

// Pins this process, and what it starts, to cores like "0-3,6"; "" does
// nothing. Errors: InvalidArgument for what is no core, or is not ours.
absl::Status PinToCpus(const std::string& text);

// How many threads `self` computes with: `asked`, or, for 0, the cores of this
// process over the workers, chief and evaluator that share its machine.
// Errors: InvalidArgument if `asked` is negative.
absl::StatusOr<int> ComputeThreads(int asked, const ClusterSpec& spec,
                                   const TaskId& self);

}  // namespace muster

#endif  // WORKER_TASK_COMPUTE_CORES_H_
