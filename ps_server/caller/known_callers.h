#ifndef PS_SERVER_CALLER_KNOWN_CALLERS_H_
#define PS_SERVER_CALLER_KNOWN_CALLERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "common/tls/identity.h"
#include "proto/cluster.pb.h"
#include "ps_server/caller/caller.h"
#include "ps_server/caller/listed_tasks.h"
#include "ps_server/caller/task_name.h"

namespace muster {

// The roles of the holders of certificates, as a ps knows them from its
// cluster. Constant.
class KnownCallers {
 public:
  explicit KnownCallers(const ClusterDef& cluster = {});

  // The chief is whom the cluster says, not a certificate: job chief, else
  // worker 0.
  Caller CallerOf(const Identity& identity) const;

 private:
  const ListedTasks listed_;
  // In all-reduce: ps tasks by the training task in whose process they are.
  const std::map<TaskKey, TaskKey> shards_;
};

// The task that a ps proves to be: itself, or, in all-reduce, the training task
// in whose process it is.
TaskKey ProcessOfPs(const ClusterDef& cluster, int32_t ps_index);

// The address of a ps task, "host:port"; "" if the cluster has none.
std::string AddressOfPs(const ClusterDef& cluster, int32_t ps_index);

}  // namespace muster

#endif  // PS_SERVER_CALLER_KNOWN_CALLERS_H_
