#ifndef PS_SERVER_CALLER_CLUSTER_CHECK_H_
#define PS_SERVER_CALLER_CLUSTER_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// Compares what a caller believes with what this ps knows: the protocol
// version, the ps list, which ps this is, and the caller's own (job, index,
// address). Never the whole spec: under Kubernetes each worker has a partial
// one. A task of a job that `cluster` does not list at all is believed, and so
// is one of a named namespace, whose workers its own job lists.
// An empty `cluster` (--standalone) has nothing to compare.
//
// Errors: FailedPrecondition for another protocol version, InvalidArgument for
// another cluster; both name the first difference.
absl::Status CheckHello(const HelloRequest& request, const ClusterDef& cluster,
                        int32_t ps_index);

}  // namespace muster

#endif  // PS_SERVER_CALLER_CLUSTER_CHECK_H_
