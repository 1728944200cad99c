#include "worker/input/fill_batch.h"

#include "worker/input/file/bad_rows.h"
#include "worker/input/row_weights.h"

namespace muster {

Batch MakeBatch(const DataSet& data_set, int64_t batch_size) {
  Batch batch = MakeLabelledBatch(batch_size, data_set.example_shape(),
                                  data_set.num_targets());
  if (data_set.has_weights()) {
    batch.Add(kBatchWeights, FLOAT32, Shape(), batch_size);
  }
  return batch;
}

absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch) {
  return FillBatchInOrder(data_set, first, /*bad_records=*/nullptr, batch)
      .status();
}

absl::StatusOr<int64_t> FillBatchInOrder(const DataSet& data_set, int64_t first,
                                         BadRecords* bad_records, Batch& batch,
                                         std::vector<int64_t>* indices) {
  const BatchRows rows(batch, IsLabelled(data_set));
  batch.rows = 0;
  if (indices != nullptr) indices->clear();
  int64_t next = first;
  while (next < data_set.num_examples() && batch.rows < rows.room()) {
    const absl::Status status = data_set.Read(next, rows.Row(batch.rows));
    if (status.ok()) {
      ++batch.rows;
      if (indices != nullptr) indices->push_back(next);
    }
    ++next;
    if (status.ok()) continue;
    if (bad_records == nullptr || !IsBadRecord(status)) return status;
    bad_records->Add(status);
  }
  NormalizeWeights({&batch, 1});
  batch.id = NewBatchId();
  return next;
}

}  // namespace muster
