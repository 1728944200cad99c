#ifndef WORKER_CLIENT_LINK_SHARD_LINK_H_
#define WORKER_CLIENT_LINK_SHARD_LINK_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/rpc/credentials.h"
#include "common/rpc/link.h"
#include "common/rpc/link_choice.h"
#include "common/rpc/parameter_link.h"
#include "worker/client/link/peer_failure.h"

namespace muster {

// One ps, and the task that what listens there proves to be: its own, or in
// all-reduce that of the process it is in.
struct ShardPeer {
  PeerName name;
  TaskId process;
};

// The way to one ps: over gRPC, with shared memory or TCP for tensors as
// `choice` says. `reporter` gets a line that names the way of the tensors, now
// or when it is known, and whenever it changes. `clock` is monotonic; it and
// what `credentials` refer to outlive the link.
std::unique_ptr<ParameterLink> MakeShardLink(const ShardPeer& peer,
                                             const TaskCredentials& credentials,
                                             LinkChoice choice,
                                             const Reporter& reporter,
                                             const Clock* clock);

// The ps tasks, wherever they are.
struct WorkerLinks {
  std::vector<std::unique_ptr<ParameterLink>> shards;
  std::unique_ptr<Link> coordination;
};

// The ps tasks of `spec`, each over the link that `choice` says; connects to
// none of them yet. `credentials`, `reporter` and `clock`: as above.
WorkerLinks MakeClusterLinks(const ClusterSpec& spec,
                             const TaskCredentials& credentials,
                             LinkChoice choice, const Reporter& reporter,
                             const Clock* clock);

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_SHARD_LINK_H_
