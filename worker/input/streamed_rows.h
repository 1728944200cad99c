#ifndef WORKER_INPUT_STREAMED_ROWS_H_
#define WORKER_INPUT_STREAMED_ROWS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_order.h"
#include "worker/input/map_threads.h"
#include "worker/input/row_position.h"
#include "worker/input/step_source.h"
#include "worker/input/stream/endless_records.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// The rows of a stream. Every worker reads all of it: at the step that begins
// at row p worker i of N decodes the rows p + i*r ... + r, as in DataOrder, and
// the next step begins at p + N*r. A step may end in the next pass, so that
// nothing is left out. One thread reads, `threads` decode.
class StreamedRows : public StepSource {
 public:
  struct Options {
    // The seed, batches and workers; shuffle counts for nothing.
    DataOrder::Options order;
    // As EndlessRecords has it.
    int64_t shuffle_buffer = 0;
    int threads = 1;
    // Null: a bad row is an error. Else the next good one of this worker's rows
    // of the step takes its place or, if there is none, the next good one of
    // the stream after the step.
    BadRecords* bad_records = nullptr;
  };

  // Errors: those of DataOrder::Check.
  static absl::StatusOr<std::unique_ptr<StepSource>> Create(
      std::unique_ptr<ExampleStream> stream, const Options& options);

  Batch MakeBatch() const override;
  absl::StatusOr<RowPosition> Fill(const RowPosition& position,
                                   absl::Span<Batch> batches) override;
  void Stop() override {
    records_.Stop();
    threads_.Stop();
  }
  uint64_t StepNumber(const RowPosition& after) const override;
  int64_t steps_per_epoch() const override { return 0; }
  int64_t step_rows() const override {
    return rows_ * options_.order.num_workers;
  }
  RowOrder order() const override { return RowOrder::kStream; }

 private:
  StreamedRows(std::unique_ptr<ExampleStream> stream, const Options& options);

  // Begins a pass, and goes on after so many of its rows; if it has no more,
  // with the next one.
  absl::Status GoTo(const RowPosition& position);
  // The next record, and those that others decode, if any does.
  absl::Status Take(OrderedRecord* record);
  absl::Status Skip(int64_t rows);
  ExampleMemory Memory(absl::Span<Batch> batches, int64_t i) const;
  // Decodes own row i, or marks it as bad.
  absl::Status Decode(int64_t i, const ExampleMemory& into);
  // Puts another row into the place of bad row i.
  absl::Status Replace(int64_t i, absl::Span<Batch> batches);

  // Constant after construction.
  const Options options_;
  // r.
  const int64_t rows_;

  EndlessRecords records_;
  // Where it is, once it has begun.
  bool begun_ = false;
  RowPosition at_;
  // The worker's rows of a step, and which of them are bad.
  std::vector<OrderedRecord> own_;
  std::vector<absl::Status> bad_;
  OrderedRecord skipped_;
  MapThreads threads_;
};

}  // namespace muster

#endif  // WORKER_INPUT_STREAMED_ROWS_H_
