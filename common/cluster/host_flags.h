#ifndef COMMON_CLUSTER_HOST_FLAGS_H_
#define COMMON_CLUSTER_HOST_FLAGS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster_spec.h"

namespace muster {

// Makes a cluster from TensorFlow 1's flags --ps_hosts and --worker_hosts:
// comma-separated addresses in the order of task indices; workers that come and
// go are "any", or none. Both empty gives the empty spec.
// Errors: InvalidArgument naming the flag's task and address.
absl::StatusOr<ClusterSpec> ParseHostFlags(absl::string_view ps_hosts,
                                           absl::string_view worker_hosts);

}  // namespace muster

#endif  // COMMON_CLUSTER_HOST_FLAGS_H_
