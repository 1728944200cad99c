#include "worker/input/fill_batch.h"

#include "worker/input/batch_rows.h"
#include "worker/input/file/bad_rows.h"

namespace muster {

Batch MakeBatch(const DataSet& data_set, int64_t batch_size) {
  return MakeLabelledBatch(batch_size, data_set.example_shape(),
                           data_set.num_targets());
}

absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch) {
  return FillBatchInOrder(data_set, first, /*bad_records=*/nullptr, batch)
      .status();
}

absl::StatusOr<int64_t> FillBatchInOrder(const DataSet& data_set, int64_t first,
                                         BadRecords* bad_records,
                                         Batch& batch) {
  const BatchRows rows(batch, IsLabelled(data_set));
  batch.rows = 0;
  int64_t next = first;
  while (next < data_set.num_examples() && batch.rows < rows.room()) {
    const absl::Status status = data_set.Read(next, rows.Row(batch.rows));
    ++next;
    if (status.ok()) {
      ++batch.rows;
      continue;
    }
    if (bad_records == nullptr || !IsBadRecord(status)) return status;
    bad_records->Add(status);
  }
  batch.id = NewBatchId();
  return next;
}

}  // namespace muster
