#ifndef PS_SERVER_SHARD_SHARD_OPTIONS_H_
#define PS_SERVER_SHARD_SHARD_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/base/thread_team.h"
#include "proto/cluster.pb.h"

namespace muster {

// The settings of a ps process for its shard.
struct ShardOptions {
  // The cluster as this ps knows it; empty for --standalone.
  ClusterDef cluster;
  int32_t ps_index = 0;
  // Random, not 0, new at every start of the process.
  uint64_t incarnation = 1;
  // Parameters and slots together; a Define beyond it is refused. What a model
  // leaves of it is for the copies of a snapshot, and in synchronous
  // replication half of that for gradients.
  int64_t max_bytes = int64_t{64} << 30;
  // The most of that for one namespace, with the copies of its snapshot and its
  // gradients.
  int64_t max_namespace_bytes = std::numeric_limits<int64_t>::max();
  // Named namespaces that may come; 0: the process serves one job, the default
  // namespace's.
  size_t max_namespaces = 0;
  // Gradients of one round together; a push beyond it, or beyond what is left
  // for them, is refused.
  int64_t max_gradient_bytes = std::numeric_limits<int64_t>::max();
  // Parameters that are pulled in place lie where other processes can read
  // them.
  bool shares_memory = false;
  // Shares the work on large parts; null: the caller of the shard does it all.
  // Outlives the shard.
  ThreadTeam* apply_team = nullptr;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_SHARD_OPTIONS_H_
