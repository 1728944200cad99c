#ifndef WORKER_CLIENT_ROW_PULL_H_
#define WORKER_CLIENT_ROW_PULL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/parameter_service.pb.h"
#include "worker/client/shard_group.h"
#include "worker/client/table_rows.h"

namespace muster {

struct PulledRows {
  // By ps task: of its oldest rows; kNotAsked if it has none of them.
  std::vector<int64_t> versions;
  // The ids' and the values', on the way.
  int64_t bytes = 0;
};
inline constexpr int64_t kNotAsked = -1;

// Adds the versions of one pull to those of others, by ps task: the oldest
// stays. `all` is empty if there are none yet.
void AddRowVersions(absl::Span<const int64_t> versions,
                    std::vector<int64_t>* all);

// Brings rows to the caller's memory, whose contents are a mixture after an
// error; waits. Only ps tasks that have some of the rows are asked. See
// ParameterClient::PullRows.
absl::StatusOr<PulledRows> PullTableRows(ShardGroup* shards,
                                         absl::Span<const TableRows> rows,
                                         const StepToken& token);

}  // namespace muster

#endif  // WORKER_CLIENT_ROW_PULL_H_
