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

namespace {

absl::Status CheckSize(int64_t examples, const StepSource::Options& options) {
  const int64_t batches = options.batches_per_step;
  // Divided one by one: a product might overflow.
  const int64_t batch_size = examples / batches;
  if (batch_size >= options.batch_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input.batch_size: a step of this worker, ", batches, " batch(es) of ",
      options.batch_size, ", wants ", batches, " * ", options.batch_size,
      " training examples, the data set has ", examples,
      batch_size > 0
          ? absl::StrCat(": --set=input.batch_size=", batch_size,
                         ", or, where that is set, "
                         "--set=input.global_batch_size=",
                         batch_size * batches, " for each worker")
          : ", fewer than batches: train with fewer towers or accumulated "
            "batches"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepSource>> IndexedRows::Create(
    const DataSet* data_set, const Options& options) {
  const int64_t examples = data_set->num_examples();
  RETURN_IF_ERROR(CheckSize(examples, options));
  RETURN_IF_ERROR(CheckMemory(
      absl::StrCat("input: the order of ", examples, " training examples in ",
                   DataOrder::kKeptEpochs, " epochs"),
      SaturatingProduct(SaturatingProduct(examples, sizeof(int64_t)),
                        DataOrder::kKeptEpochs),
      OwnMemoryLimit()));
  return absl::WrapUnique(new IndexedRows(data_set, options));
}

IndexedRows::IndexedRows(const DataSet* data_set, const Options& options)
    : data_set_(data_set),
      options_(options),
      order_(data_set->num_examples(), options.seed, options.shuffle),
      threads_(options.threads) {}

Batch IndexedRows::MakeBatch() const {
  return muster::MakeBatch(*data_set_, options_.batch_size);
}

absl::Status IndexedRows::Fill(const RowLease& lease,
                               absl::Span<Batch> batches) {
  RETURN_IF_ERROR(CheckLease(lease, options_.step_rows()));
  int64_t filled = 0;
  for (const RowRange& range : lease.ranges()) {
    RowRange part = range;
    for (int64_t left = range.rows(); left > 0; left -= part.rows()) {
      part.set_first(range.first() + range.rows() - left);
      part.set_rows(std::min(left, epoch_rows() - part.first() % epoch_rows()));
      RETURN_IF_ERROR(FillRange(part, filled, batches));
      filled += part.rows();
    }
  }
  for (Batch& batch : batches) {
    batch.rows = options_.batch_size;
    batch.id = NewBatchId();
  }
  return absl::OkStatus();
}

absl::Status IndexedRows::FillRange(const RowRange& range, int64_t begin,
                                    absl::Span<Batch> batches) {
  const int64_t epoch = range.first() / epoch_rows();
  const int64_t first = range.first() % epoch_rows();
  const absl::Span<const int64_t> order = order_.Epoch(epoch);
  const bool labelled = IsLabelled(*data_set_);
  const int64_t batch_size = options_.batch_size;
  return threads_.ForEachRow(range.rows(), [&](int64_t i) {
    const int64_t row = begin + i;
    const BatchRows into(batches[row / batch_size], labelled);
    return Read(order, first + i, epoch, into.Row(row % batch_size));
  });
}

absl::Status IndexedRows::Read(absl::Span<const int64_t> order, int64_t index,
                               int64_t epoch, const ExampleMemory& into) const {
  BadRecords* const bad_records = options_.bad_records;
  const auto all = static_cast<int64_t>(order.size());
  for (int64_t tried = 0;; ++tried) {
    const absl::Status status =
        data_set_->ReadInEpoch(order[(index + tried) % all], epoch, into);
    if (bad_records == nullptr || !IsBadRecord(status)) return status;
    // The others are told by those whose rows they are.
    if (tried == 0) bad_records->Add(status);
    if (tried + 1 == std::min(all, kMostBadInARow)) {
      return AllBad(tried + 1, status);
    }
  }
}

}  // namespace muster
