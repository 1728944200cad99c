#include "worker/input/indexed_rows.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/fill_batch.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StepSource>> IndexedRows::Create(
    const DataSet* data_set, const DataOrder::Options& order, int threads,
    BadRecords* bad_records) {
  const int64_t examples = data_set->num_examples();
  ASSIGN_OR_RETURN(DataOrder checked, DataOrder::Create(examples, order));
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("input: the order of ", examples, " training examples"),
      SaturatingProduct(examples, sizeof(int64_t)), OwnMemoryLimit()));
  return absl::WrapUnique(new IndexedRows(
      data_set, std::move(checked), order.batch_size, threads, bad_records));
}

IndexedRows::IndexedRows(const DataSet* data_set, DataOrder order,
                         int64_t batch_size, int threads,
                         BadRecords* bad_records)
    : data_set_(data_set),
      batch_size_(batch_size),
      bad_records_(bad_records),
      order_(std::move(order)),
      threads_(threads) {}

Batch IndexedRows::MakeBatch() const {
  return muster::MakeBatch(*data_set_, batch_size_);
}

absl::StatusOr<RowPosition> IndexedRows::Fill(const RowPosition& position,
                                              absl::Span<Batch> batches) {
  const absl::Span<const int64_t> order = order_.Epoch(position);
  const int64_t first = order_.FirstPlace(position);
  const auto rows = static_cast<int64_t>(batches.size()) * batch_size_;
  const int64_t epoch = order_.BeginOf(position).epoch;
  const bool labelled = IsLabelled(*data_set_);
  RETURN_IF_ERROR(threads_.ForEachRow(rows, [&](int64_t i) {
    const BatchRows into(batches[i / batch_size_], labelled);
    return Read(order, first + i, epoch, into.Row(i % batch_size_));
  }));
  for (Batch& batch : batches) {
    batch.rows = batch_size_;
    batch.id = NewBatchId();
  }
  return order_.After(position);
}

absl::Status IndexedRows::Read(absl::Span<const int64_t> order, int64_t place,
                               int64_t epoch, const ExampleMemory& into) const {
  const auto all = static_cast<int64_t>(order.size());
  for (int64_t tried = 0;; ++tried) {
    const absl::Status status =
        data_set_->ReadInEpoch(order[(place + tried) % all], epoch, into);
    if (bad_records_ == nullptr || !IsBadRecord(status)) return status;
    // The others are told by those whose rows they are.
    if (tried == 0) bad_records_->Add(status);
    if (tried + 1 == std::min(all, kMostBadInARow)) {
      return AllBad(tried + 1, status);
    }
  }
}

}  // namespace muster
