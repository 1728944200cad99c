#ifndef WORKER_WORKER_POSITIONS_H_
#define WORKER_WORKER_POSITIONS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The workers' progress, as a manifest keeps it.
void SavePositions(const JobState& state, CheckpointManifest* manifest);

// The progress of `tasks` after a restore. The same tasks go on where each of
// them was. With another number of tasks a local step means other rows, so all
// go on from the smallest position, as many rows into the data: what a faster
// worker had read beyond it is read again, nothing is left out.
std::vector<WorkerState> RestorePositions(const CheckpointManifest& manifest,
                                          absl::Span<const TaskId> tasks);

}  // namespace muster

#endif  // WORKER_WORKER_POSITIONS_H_
