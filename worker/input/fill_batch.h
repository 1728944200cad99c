#ifndef WORKER_INPUT_FILL_BATCH_H_
#define WORKER_INPUT_FILL_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/input/bad_records.h"
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
    if (batch.Find(kBatchWeights) != nullptr) {
      first_.weight = batch.weights().data();
    }
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
    if (first_.weight != nullptr) row.weight = first_.weight + i;
    return row;
  }

 private:
  int64_t elements_;
  int64_t num_targets_ = 0;
  int64_t room_;
  ExampleMemory first_;
};

// An empty batch with room for `batch_size` examples of `data_set`.
Batch MakeBatch(const DataSet& data_set, int64_t batch_size);

// Has a row a class or targets? Else a batch's labels stay as they are.
inline bool IsLabelled(const DataSet& data_set) {
  return data_set.num_targets() > 0 || data_set.num_classes() > 0;
}

// Fills `batch` with the examples from `first` on, in order, as many as there
// are and have room, normalizes its weights and gives it a new id. `batch.rows`
// is 0 after the last one. Errors: DataSet::Read's.
absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch);

// The same without the bad records among them, which `bad_records` counts;
// null: they are errors. Makes `indices`, unless that is null, those of the
// batch's rows. Returns the index after the last example that was looked at.
absl::StatusOr<int64_t> FillBatchInOrder(
    const DataSet& data_set, int64_t first, BadRecords* bad_records,
    Batch& batch, std::vector<int64_t>* indices = nullptr);

}  // namespace muster

#endif  // WORKER_INPUT_FILL_BATCH_H_
