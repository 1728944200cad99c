#ifndef PS_SERVER_SHARD_ROW_MEAN_H_
#define PS_SERVER_SHARD_ROW_MEAN_H_

#include <vector>

#include "ps_server/block/row_checks.h"
#include "ps_server/shard/replication_policy.h"

namespace muster {

// Makes the part of one update that rows have, by the mean of the gradients of
// `workers`, each of which has rows of some tables: for each row that any of
// them has, by logical shard, then id
//
//   sum = g[0];  sum += g[i] for i = 1, 2, ... of the workers who have it
//   the table's rule with sum / number of all workers
//
// in float: a worker without the row has a gradient of zero.
void ApplyRowMeans(const std::vector<std::vector<CheckedRows>>& workers,
                   double rate_factor, PartApplier& applier);

}  // namespace muster

#endif  // PS_SERVER_SHARD_ROW_MEAN_H_
