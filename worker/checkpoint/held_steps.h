#ifndef WORKER_CHECKPOINT_HELD_STEPS_H_
#define WORKER_CHECKPOINT_HELD_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// For each start of a worker of which every shard holds a whole step at its cut
// (`cuts` by ps task), the newest that all of them hold. Shards that no push
// changes do not count.
std::vector<HeldStep> StepsOnAllShards(
    absl::Span<const BeginSnapshotReply> cuts);

// Makes `state`, which was read before the cuts, that of the cuts: raises
// steps and examples of the workers to those that `reply` says are
// counted, and the job's sums with them. Errors: Aborted if a start of a worker
// was current in `state` and is not any more: some of its steps may be in the
// cuts and not in `state`.
absl::Status CountHeldSteps(const ConfirmCutReply& reply, JobState* state);

// The most rows of steps that are in some shards' cuts, and are not whole in
// all of them (`held`: StepsOnAllShards). A restore deals them again. A worker
// without steps in `state` has steps of `step_rows`.
int64_t RowsOfPartialSteps(absl::Span<const BeginSnapshotReply> cuts,
                           absl::Span<const HeldStep> held,
                           const JobState& state, int64_t step_rows);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_HELD_STEPS_H_
