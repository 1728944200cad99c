#include "worker/input/streamed_rows.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/fill_batch.h"

namespace muster {
namespace {

// Above the rows of any pass: passes' steps have numbers of their own.
constexpr int kPassBits = 44;

}  // namespace

absl::StatusOr<std::unique_ptr<StepSource>> StreamedRows::Create(
    std::unique_ptr<ExampleStream> stream, const Options& options) {
  RETURN_IF_ERROR(DataOrder::Check(options.order));
  return absl::WrapUnique(new StreamedRows(std::move(stream), options));
}

StreamedRows::StreamedRows(std::unique_ptr<ExampleStream> stream,
                           const Options& options)
    : options_(options),
      rows_(options.order.batch_size * options.order.batches_per_step),
      records_(std::move(stream), options.order.seed, options.shuffle_buffer),
      own_(rows_),
      bad_(rows_),
      threads_(options.threads) {}

Batch StreamedRows::MakeBatch() const {
  const ExampleStream& stream = records_.stream();
  const int64_t room = options_.order.batch_size;
  Batch batch =
      MakeLabelledBatch(room, stream.example_shape(), stream.num_targets());
  if (stream.has_weights()) batch.Add(kBatchWeights, FLOAT32, Shape(), room);
  return batch;
}

uint64_t StreamedRows::StepNumber(const RowPosition& after) const {
  return (static_cast<uint64_t>(after.epoch) << kPassBits) +
         static_cast<uint64_t>(after.rows);
}

absl::Status StreamedRows::Take(OrderedRecord* record) {
  RETURN_IF_ERROR(records_.Next(record));
  at_ = {record->epoch, record->place + 1};
  return absl::OkStatus();
}

absl::Status StreamedRows::Skip(int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) RETURN_IF_ERROR(Take(&skipped_));
  return absl::OkStatus();
}

absl::Status StreamedRows::GoTo(const RowPosition& position) {
  RETURN_IF_ERROR(records_.Begin(position.epoch));
  at_ = {position.epoch, 0};
  while (at_.rows < position.rows) {
    RETURN_IF_ERROR(Take(&skipped_));
    if (at_.epoch == position.epoch) continue;
    // The files have become shorter.
    RETURN_IF_ERROR(records_.Begin(at_.epoch));
    at_.rows = 0;
    break;
  }
  return absl::OkStatus();
}

absl::StatusOr<RowPosition> StreamedRows::Fill(const RowPosition& position,
                                               absl::Span<Batch> batches) {
  if (!begun_ || !(at_ == position)) RETURN_IF_ERROR(GoTo(position));
  begun_ = true;
  const DataOrder::Options& order = options_.order;
  RETURN_IF_ERROR(Skip(order.worker_index * rows_));
  for (OrderedRecord& own : own_) RETURN_IF_ERROR(Take(&own));
  RETURN_IF_ERROR(Skip((order.num_workers - 1 - order.worker_index) * rows_));
  RETURN_IF_ERROR(threads_.ForEachRow(
      rows_, [&](int64_t i) { return Decode(i, Memory(batches, i)); }));
  for (int64_t i = 0; i < rows_; ++i) {
    if (!bad_[i].ok()) RETURN_IF_ERROR(Replace(i, batches));
  }
  for (Batch& batch : batches) {
    batch.rows = order.batch_size;
    batch.id = NewBatchId();
  }
  return at_;
}

ExampleMemory StreamedRows::Memory(absl::Span<Batch> batches, int64_t i) const {
  const int64_t batch_size = options_.order.batch_size;
  return BatchRows(batches[i / batch_size], /*labelled=*/true)
      .Row(i % batch_size);
}

absl::Status StreamedRows::Decode(int64_t i, const ExampleMemory& into) {
  bad_[i] = records_.stream().Decode(own_[i].record, own_[i].epoch, into);
  if (options_.bad_records != nullptr && IsBadRecord(bad_[i])) {
    return absl::OkStatus();
  }
  return bad_[i];
}

absl::Status StreamedRows::Replace(int64_t i, absl::Span<Batch> batches) {
  options_.bad_records->Add(bad_[i]);
  const ExampleMemory into = Memory(batches, i);
  const ExampleStream& stream = records_.stream();
  for (int64_t other = i + 1; other < rows_; ++other) {
    if (!bad_[other].ok()) continue;
    return stream.Decode(own_[other].record, own_[other].epoch, into);
  }
  absl::Status last;
  for (int64_t ahead = 0; ahead < kMostBadInARow; ++ahead) {
    ASSIGN_OR_RETURN(const OrderedRecord* const next, records_.Peek(ahead));
    last = stream.Decode(next->record, next->epoch, into);
    if (!IsBadRecord(last)) return last;
  }
  return AllBad(kMostBadInARow, last);
}

}  // namespace muster
