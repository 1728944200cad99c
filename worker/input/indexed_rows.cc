#include "worker/input/indexed_rows.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/batch_rows.h"
#include "worker/input/fill_batch.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepSource>> IndexedRows::Create(
    const DataSet* data_set, const DataOrder::Options& order, int threads) {
  const int64_t examples = data_set->num_examples();
  ASSIGN_OR_RETURN(DataOrder checked, DataOrder::Create(examples, order));
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("input: the order of ", examples, " training examples"),
      SaturatingProduct(examples, sizeof(int64_t)), OwnMemoryLimit()));
  return absl::WrapUnique(
      new IndexedRows(data_set, std::move(checked), order.batch_size, threads));
}

IndexedRows::IndexedRows(const DataSet* data_set, DataOrder order,
                         int64_t batch_size, int threads)
    : data_set_(data_set),
      batch_size_(batch_size),
      order_(std::move(order)),
      threads_(threads) {}

Batch IndexedRows::MakeBatch() const {
  return muster::MakeBatch(*data_set_, batch_size_);
}

absl::StatusOr<RowPosition> IndexedRows::Fill(const RowPosition& position,
                                              absl::Span<Batch> batches) {
  const absl::Span<const int64_t> rows = order_.Rows(position);
  const int64_t epoch = order_.BeginOf(position).epoch;
  const bool labelled = IsLabelled(*data_set_);
  RETURN_IF_ERROR(threads_.ForEachRow(rows.size(), [&](int64_t i) {
    const BatchRows into(batches[i / batch_size_], labelled);
    return data_set_->ReadInEpoch(rows[i], epoch, into.Row(i % batch_size_));
  }));
  for (Batch& batch : batches) {
    batch.rows = batch_size_;
    batch.id = NewBatchId();
  }
  return order_.After(position);
}

}  // namespace muster
