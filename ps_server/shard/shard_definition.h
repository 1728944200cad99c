#ifndef PS_SERVER_SHARD_SHARD_DEFINITION_H_
#define PS_SERVER_SHARD_SHARD_DEFINITION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/optimizer/update_rule.h"
#include "proto/parameter_service.pb.h"
#include "ps_server/shard/replication_policy.h"
#include "ps_server/shard/shard_options.h"

namespace muster {

// A model as a chief has defined it, without its tensors and tables.
struct ShardDefinition {
  uint64_t fingerprint = 0;
  bool allow_non_finite = false;
  bool may_be_read_in_place = false;
  std::string optimizer_name;
  std::unique_ptr<UpdateRule> rule;
  std::unique_ptr<ReplicationPolicy> policy;
  // The model's updates before this epoch.
  int64_t updates = 0;
  // The memory that the model may have, and what is left of it for rows and
  // the copies of a snapshot.
  int64_t max_bytes = 0;
  int64_t max_copy_bytes = 0;
};

// Checks the request's optimizer, tensors, tables and replication, and makes
// what is needed of them, for a model that may have `max_bytes`; allocates none
// of the tensors' memory. Errors: those of CreateUpdateRule, CheckTensorDefs,
// CheckTables and CreateReplicationPolicy.
absl::StatusOr<ShardDefinition> CheckDefinition(const DefineRequest& request,
                                                const ShardOptions& options,
                                                int64_t max_bytes);

}  // namespace muster

#endif  // PS_SERVER_SHARD_SHARD_DEFINITION_H_
