#ifndef WORKER_CHECKPOINT_WORKER_POSITIONS_H_
#define WORKER_CHECKPOINT_WORKER_POSITIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "proto/training.pb.h"
#include "worker/input/row_position.h"

namespace muster {

// The rows that a run takes.
struct TakenRows {
  // Rows of the data set.
  int64_t num_examples = 0;
  // Rows of one step of one worker.
  int64_t worker_rows = 0;
  RowOrder order = RowOrder::kPermutation;
};

// Where the workers of a restored run go on.
struct RestoredPositions {
  std::vector<WorkerState> workers;
  // Where a worker goes on that has no position of its own.
  DataPosition start;
  // A line for the operator; "" if there is nothing to say.
  std::string note;
};

// The job's progress, as a manifest keeps it. Of `tasks`, the job's, those that
// have never come are at the beginning.
void SavePositions(const JobState& state, absl::Span<const TaskId> tasks,
                   CheckpointManifest* manifest);

// The progress of `tasks`, whose run takes `rows`, after a restore. The same
// tasks with steps of as many rows go on where each of them was. With others a
// step has other rows, so all go on from the smallest position: what a faster
// worker had read beyond it is read again, nothing is left out.
//
// A manifest that counts steps is taken for one of this run's worker_rows, if
// its examples say the same; else the data goes on at the beginning of the
// epoch that they suggest, and the note says so. Errors: InvalidArgument for a
// position of an unknown kind, by name, or out of range.
absl::StatusOr<RestoredPositions> RestorePositions(
    const CheckpointManifest& manifest, absl::Span<const TaskId> tasks,
    const TakenRows& rows);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_WORKER_POSITIONS_H_
