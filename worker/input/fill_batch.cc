#include "worker/input/fill_batch.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/input/batch_rows.h"

namespace muster {

Batch MakeBatch(const DataSet& data_set, int64_t batch_size) {
  return MakeLabelledBatch(batch_size, data_set.example_shape(),
                           data_set.num_targets());
}

absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch) {
  const BatchRows rows(batch, IsLabelled(data_set));
  batch.rows =
      std::clamp<int64_t>(data_set.num_examples() - first, 0, rows.room());
  for (int64_t i = 0; i < batch.rows; ++i) {
    RETURN_IF_ERROR(data_set.Read(first + i, rows.Row(i)));
  }
  batch.id = NewBatchId();
  return absl::OkStatus();
}

}  // namespace muster
