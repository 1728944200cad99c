#ifndef WORKER_CHECKPOINT_RESTORED_ROWS_H_
#define WORKER_CHECKPOINT_RESTORED_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "proto/cluster.pb.h"
#include "proto/coordination_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "worker/input/row_position.h"

namespace muster {

// The rows that a run takes.
struct TakenRows {
  // Rows of the data set; 0: not known, as a stream's.
  int64_t num_examples = 0;
  // Rows of one step of one worker.
  int64_t worker_rows = 0;
  RowOrder order = RowOrder::kPermutation;
};

// What a restored run goes on from.
struct RestoredRows {
  std::vector<WorkerState> workers;
  RowLedger ledger;
  // A line for the operator; "" if there is nothing to say.
  std::string note;
};

// Gives a manifest the counts of the job's workers, and the ledger of a cut in
// terms of the run that took `rows`.
void SaveRows(const JobState& state, RowLedger ledger, const TakenRows& rows,
              CheckpointManifest* manifest);

// The progress of `tasks`, and which of its `rows` the run has trained on. With
// a data set of another size the run goes on at the beginning of the next
// epoch, and the note says so.
//
// An older manifest has a position for each worker: all rows before the
// smallest are done, and what a faster worker had read beyond it is read again.
// One that counts steps is taken for one of this run's worker_rows, if its
// examples say the same; else the data goes on at the beginning of the epoch
// that they suggest, and the note says so. Errors: InvalidArgument for rows of
// an unknown kind, by name, or out of range.
absl::StatusOr<RestoredRows> RestoreRows(const CheckpointManifest& manifest,
                                         absl::Span<const TaskId> tasks,
                                         const TakenRows& rows);

}  // namespace muster

#endif  // WORKER_CHECKPOINT_RESTORED_ROWS_H_
