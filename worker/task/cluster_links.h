#ifndef WORKER_TASK_CLUSTER_LINKS_H_
#define WORKER_TASK_CLUSTER_LINKS_H_

#include "common/base/clock.h"
#include "common/cluster/cluster_spec.h"
#include "common/rpc/link_choice.h"
#include "worker/task/worker_task.h"

namespace muster {

// The ps tasks of `spec`, each over the link that `choice` says; connects to
// none of them yet. Which link each uses is said in one line. `clock` outlives
// the links.
WorkerLinks MakeClusterLinks(const ClusterSpec& spec, LinkChoice choice,
                             const Clock* clock);

}  // namespace muster

#endif  // WORKER_TASK_CLUSTER_LINKS_H_
