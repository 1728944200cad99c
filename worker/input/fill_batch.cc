#include "worker/input/fill_batch.h"

#include <algorithm>
#include <atomic>

#include "common/base/status_macros.h"

namespace muster {
namespace {

int64_t NewId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

// The memory of a batch's rows, as far as the data set has something for it.
class BatchRows {
 public:
  BatchRows(const DataSet& data_set, Batch& batch)
      : elements_(data_set.example_shape().num_elements()),
        num_targets_(data_set.num_targets()),
        room_(static_cast<int64_t>(batch.input().size()) / elements_) {
    first_.values = batch.input().data();
    if (num_targets_ > 0) {
      first_.targets = batch.targets().data();
    } else if (data_set.num_classes() > 0) {
      first_.label = batch.labels().data();
    }
  }

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
  const int64_t elements_;
  const int64_t num_targets_;
  const int64_t room_;
  ExampleMemory first_;
};

}  // namespace

Batch MakeBatch(const DataSet& data_set, int64_t batch_size) {
  return MakeLabelledBatch(batch_size, data_set.example_shape(),
                           data_set.num_targets());
}

absl::Status FillBatch(const DataSet& data_set,
                       absl::Span<const int64_t> indices, int64_t epoch,
                       Batch& batch) {
  const BatchRows rows(data_set, batch);
  for (size_t i = 0; i < indices.size(); ++i) {
    RETURN_IF_ERROR(data_set.ReadInEpoch(indices[i], epoch, rows.Row(i)));
  }
  batch.rows = static_cast<int64_t>(indices.size());
  batch.id = NewId();
  return absl::OkStatus();
}

absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch) {
  const BatchRows rows(data_set, batch);
  batch.rows =
      std::clamp<int64_t>(data_set.num_examples() - first, 0, rows.room());
  for (int64_t i = 0; i < batch.rows; ++i) {
    RETURN_IF_ERROR(data_set.Read(first + i, rows.Row(i)));
  }
  batch.id = NewId();
  return absl::OkStatus();
}

}  // namespace muster
