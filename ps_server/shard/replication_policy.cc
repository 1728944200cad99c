#include "ps_server/shard/replication_policy.h"

#include "absl/status/status.h"
#include "ps_server/shard/async_policy.h"
#include "ps_server/shard/sync_policy.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ReplicationPolicy>> CreateReplicationPolicy(
    const ReplicationSpec& spec, int64_t max_gradient_bytes, bool has_tables) {
  switch (spec.mode_case()) {
    case ReplicationSpec::MODE_NOT_SET:
    case ReplicationSpec::kAsync:
      return std::make_unique<AsyncPolicy>("async", spec.async());
    case ReplicationSpec::kSync:
      return std::make_unique<SyncPolicy>(max_gradient_bytes, has_tables);
    case ReplicationSpec::kBoundedStaleness:
      // The bound is kept where steps are granted; a shard applies at once.
      return std::make_unique<AsyncPolicy>("bounded_staleness",
                                           AsyncReplication());
    case ReplicationSpec::kAllReduce:
      return absl::InvalidArgumentError(
          "the replication is all_reduce, which is sync {} to a shard: say "
          "how many workers there are");
  }
  return absl::UnimplementedError(
      "the replication is of a mode that this version does not know; use "
      "async {}, sync {} or bounded_staleness {}");
}

}  // namespace muster
