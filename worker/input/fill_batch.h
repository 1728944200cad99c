#ifndef WORKER_INPUT_FILL_BATCH_H_
#define WORKER_INPUT_FILL_BATCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// An empty batch with room for `batch_size` examples of `data_set`.
Batch MakeBatch(const DataSet& data_set, int64_t batch_size);

// Fills `batch` with the examples of these indices as they are in `epoch`, and
// gives it a new id; allocates nothing. Of a set without labels the batch's
// stay as they are. REQUIRES: the batch has room for them. Errors:
// DataSet::Read's.
absl::Status FillBatch(const DataSet& data_set,
                       absl::Span<const int64_t> indices, int64_t epoch,
                       Batch& batch);

// Fills `batch` with the examples from `first` on, in order, as many as there
// are and have room, and gives it a new id. `batch.rows` is 0 after the last
// one. Errors: DataSet::Read's.
absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch);

}  // namespace muster

#endif  // WORKER_INPUT_FILL_BATCH_H_
