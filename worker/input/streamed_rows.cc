#include "worker/input/streamed_rows.h"

#include <iterator>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/input/file/bad_rows.h"
#include "worker/input/fill_batch.h"

namespace muster {
namespace {

// Passes whose first places are kept, more than leases are behind: for one that
// is, all is read again.
constexpr size_t kKeptPasses = 64;

}  // namespace

StreamedRows::StreamedRows(std::unique_ptr<ExampleStream> stream,
                           const Options& options)
    : options_(options),
      records_(std::move(stream), options.seed, options.shuffle_buffer),
      own_(options.step_rows()),
      bad_(options.step_rows()),
      threads_(options.threads) {}

Batch StreamedRows::MakeBatch() const {
  const ExampleStream& stream = records_.stream();
  const int64_t room = options_.batch_size;
  Batch batch =
      MakeLabelledBatch(room, stream.example_shape(), stream.num_targets());
  if (stream.has_weights()) batch.Add(kBatchWeights, FLOAT32, Shape(), room);
  return batch;
}

absl::Status StreamedRows::Fill(const RowLease& lease,
                                absl::Span<Batch> batches) {
  RETURN_IF_ERROR(CheckLease(lease, options_.step_rows()));
  absl::Status filled = ReadRows(lease);
  if (filled.ok()) filled = DecodeRows(batches);
  // After an error it is not known where the stream is.
  if (!filled.ok()) begun_ = false;
  return filled;
}

absl::Status StreamedRows::ReadRows(const RowLease& lease) {
  auto own = own_.begin();
  for (const RowRange& range : lease.ranges()) {
    RETURN_IF_ERROR(GoTo(range.first()));
    for (int64_t i = 0; i < range.rows(); ++i) {
      RETURN_IF_ERROR(ReadNext(&*own++));
    }
  }
  return absl::OkStatus();
}

absl::Status StreamedRows::GoTo(int64_t place) {
  auto pass = std::prev(passes_.end());
  while (pass->second > place) --pass;
  if (!begun_ || next_ > place || next_ < pass->second) {
    RETURN_IF_ERROR(records_.Begin(pass->first));
    begun_ = true;
    next_ = pass->second;
  }
  while (next_ < place) RETURN_IF_ERROR(ReadNext(&skipped_));
  return absl::OkStatus();
}

absl::Status StreamedRows::ReadNext(OrderedRecord* record) {
  RETURN_IF_ERROR(records_.Next(record));
  if (record->place == 0) NotePass(record->epoch);
  ++next_;
  return absl::OkStatus();
}

void StreamedRows::NotePass(int64_t pass) {
  passes_[pass] = next_;
  ForgetOldPasses();
  if (newest_.has_value() && newest_->pass() >= pass) return;
  newest_.emplace();
  newest_->set_pass(pass);
  newest_->set_first(next_);
}

void StreamedRows::SetPass(const StreamPass& pass) {
  // From another task: pass 0 begins at 0 whoever says what.
  if (pass.pass() > 0) passes_.emplace(pass.pass(), pass.first());
  ForgetOldPasses();
}

void StreamedRows::ForgetOldPasses() {
  if (passes_.size() > kKeptPasses) passes_.erase(std::next(passes_.begin()));
}

absl::Status StreamedRows::DecodeRows(absl::Span<Batch> batches) {
  const int64_t rows = options_.step_rows();
  RETURN_IF_ERROR(threads_.ForEachRow(
      rows, [&](int64_t i) { return Decode(i, Memory(batches, i)); }));
  for (int64_t i = 0; i < rows; ++i) {
    if (!bad_[i].ok()) RETURN_IF_ERROR(Replace(i, batches));
  }
  for (Batch& batch : batches) {
    batch.rows = options_.batch_size;
    batch.id = NewBatchId();
  }
  return absl::OkStatus();
}

ExampleMemory StreamedRows::Memory(absl::Span<Batch> batches, int64_t i) const {
  const int64_t batch_size = options_.batch_size;
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
  for (int64_t other = i + 1; other < options_.step_rows(); ++other) {
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
