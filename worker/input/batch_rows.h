#ifndef WORKER_INPUT_BATCH_ROWS_H_
#define WORKER_INPUT_BATCH_ROWS_H_

#include <cstdint>

#include "worker/input/batch.h"
#include "worker/input/data_set/data_set.h"

namespace muster {

// The memory of a batch's rows.
class BatchRows {
 public:
  // `labelled`: the labels are wanted, too. REQUIRES: a batch of
  // MakeLabelledBatch, which lives as long.
  BatchRows(Batch& batch, bool labelled)
      : elements_(batch.tensors.front().row_shape.num_elements()),
        room_(static_cast<int64_t>(batch.input().size()) / elements_) {
    first_.values = batch.input().data();
    if (!labelled) return;
    const BatchTensor& labels = batch.label_tensor();
    if (labels.dtype == INT32) {
      first_.label = batch.labels().data();
      return;
    }
    num_targets_ = labels.row_shape.num_elements();
    first_.targets = batch.targets().data();
  }

  // Rows.
  int64_t room() const { return room_; }

  ExampleMemory Row(int64_t i) const {
    ExampleMemory row;
    row.values = first_.values + i * elements_;
    if (first_.label != nullptr) row.label = first_.label + i;
    if (first_.targets != nullptr) {
      row.targets = first_.targets + i * num_targets_;
    }
    return row;
  }

 private:
  int64_t elements_;
  int64_t num_targets_ = 0;
  int64_t room_;
  ExampleMemory first_;
};

}  // namespace muster

#endif  // WORKER_INPUT_BATCH_ROWS_H_
