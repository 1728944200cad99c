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

// For each start of a worker, the newest step of which any shard's cut has a
// part. Without counts.
std::vector<HeldStep> BegunSteps(absl::Span<const BeginSnapshotReply> cuts);

// Makes `state`, which was read before the cuts, that of the cuts: raises
// steps and examples of the workers to those that `reply` says are
// counted, and the job's sums with them. Errors: Aborted if a start of a worker
// was current in `state` and is not any more: some of its steps may be in the
// cuts and not in `state`.
absl::Status CountHeldSteps(const ConfirmCutReply& reply, JobState* state);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_HELD_STEPS_H_
