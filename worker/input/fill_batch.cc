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

}  // namespace

Batch MakeBatch(const DataSet& data_set, int64_t batch_size) {
  return MakeLabelledBatch(batch_size, data_set.example_shape());
}

absl::Status FillBatch(const DataSet& data_set,
                       absl::Span<const int64_t> indices, int64_t epoch,
                       Batch& batch) {
  const int64_t elements = data_set.example_shape().num_elements();
  float* const examples = batch.input().data();
  int32_t* const labels = batch.labels().data();
  for (size_t i = 0; i < indices.size(); ++i) {
    RETURN_IF_ERROR(data_set.ReadInEpoch(indices[i], epoch,
                                         examples + i * elements, &labels[i]));
  }
  batch.rows = static_cast<int64_t>(indices.size());
  batch.id = NewId();
  return absl::OkStatus();
}

absl::Status FillBatchInOrder(const DataSet& data_set, int64_t first,
                              Batch& batch) {
  const int64_t elements = data_set.example_shape().num_elements();
  float* const examples = batch.input().data();
  const absl::Span<int32_t> labels = batch.labels();
  const int64_t room = static_cast<int64_t>(labels.size());
  batch.rows = std::clamp<int64_t>(data_set.num_examples() - first, 0, room);
  for (int64_t i = 0; i < batch.rows; ++i) {
    RETURN_IF_ERROR(
        data_set.Read(first + i, examples + i * elements, &labels[i]));
  }
  batch.id = NewId();
  return absl::OkStatus();
}

}  // namespace muster
