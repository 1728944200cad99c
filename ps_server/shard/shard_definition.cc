#include "ps_server/shard/shard_definition.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "ps_server/block/tensor_table.h"
#include "ps_server/shard/row_tables.h"

namespace muster {

absl::StatusOr<ShardDefinition> CheckDefinition(const DefineRequest& request,
                                                const ShardOptions& options,
                                                int64_t max_bytes) {
  ShardDefinition definition;
  ASSIGN_OR_RETURN(definition.rule, CreateUpdateRule(request.optimizer()));
  const auto num_slots = static_cast<int>(definition.rule->slots().size());
  ASSIGN_OR_RETURN(const int64_t beside_tensors,
                   CheckTensorDefs(request.tensors(), num_slots, max_bytes));
  ASSIGN_OR_RETURN(const int64_t left,
                   CheckTables(request, options.ps_index, beside_tensors));
  // Half each, if gradients are kept.
  const int64_t gradient_bytes =
      request.replication().has_sync() ? left / 2 : 0;
  ASSIGN_OR_RETURN(definition.policy,
                   CreateReplicationPolicy(
                       request.replication(),
                       std::min(options.max_gradient_bytes, gradient_bytes),
                       !request.tables().empty()));
  definition.updates = request.updates();
  definition.max_bytes = max_bytes;
  definition.max_copy_bytes = left - gradient_bytes;
  definition.optimizer_name = request.optimizer().name();
  definition.fingerprint = request.fingerprint();
  definition.allow_non_finite = request.allow_non_finite();
  definition.may_be_read_in_place =
      request.replication().has_sync() ||
      request.replication().async().pull() == IN_PLACE;
  return definition;
}

}  // namespace muster
