#ifndef WORKER_INPUT_STREAMED_ROWS_H_
#define WORKER_INPUT_STREAMED_ROWS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/row_ledger.pb.h"
#include "worker/input/batch.h"
#include "worker/input/map_threads.h"
#include "worker/input/step_source.h"
#include "worker/input/stream/endless_records.h"
#include "worker/input/stream/example_stream.h"

namespace muster {

// The rows of a stream by place, through its passes. Every worker reads all of
// it and decodes the rows of its leases. It reads forward; for a lease that is
// behind it goes back to the newest pass that it knows to begin before that,
// and forward at once where it knows a later one. So a lease has the same rows
// whatever was read before it. One thread reads, options.threads decode.
class StreamedRows : public StepSource {
 public:
  // In the place of a bad row is the next good one of the step or, if there is
  // none, the next good one of the stream after the step.
  StreamedRows(std::unique_ptr<ExampleStream> stream, const Options& options);

  Batch MakeBatch() const override;
  absl::Status Fill(const RowLease& lease, absl::Span<Batch> batches) override;
  void SetPass(const StreamPass& pass) override;
  std::optional<StreamPass> pass() const override { return newest_; }
  void Stop() override {
    records_.Stop();
    threads_.Stop();
  }
  int64_t epoch_rows() const override { return 0; }

 private:
  // Reads the rows of a lease to own_.
  absl::Status ReadRows(const RowLease& lease);
  // Makes this place the next one that is read.
  absl::Status GoTo(int64_t place);
  // The next record.
  absl::Status ReadNext(OrderedRecord* record);
  // A pass was begun, with the row at next_.
  void NotePass(int64_t pass);
  void ForgetOldPasses();
  absl::Status DecodeRows(absl::Span<Batch> batches);
  ExampleMemory Memory(absl::Span<Batch> batches, int64_t i) const;
  // Decodes own row i, or marks it as bad.
  absl::Status Decode(int64_t i, const ExampleMemory& into);
  // Puts another row into the place of bad row i.
  absl::Status Replace(int64_t i, absl::Span<Batch> batches);

  // Constant after construction.
  const Options options_;

  EndlessRecords records_;
  // Whether records_ is at next_.
  bool begun_ = false;
  // The place of the next record.
  int64_t next_ = 0;
  // The places of passes' first rows: that of pass 0 and those known last.
  std::map<int64_t, int64_t> passes_ = {{0, 0}};
  // The newest of those that were read.
  std::optional<StreamPass> newest_;
  // The rows of a step, and which of them are bad.
  std::vector<OrderedRecord> own_;
  std::vector<absl::Status> bad_;
  OrderedRecord skipped_;
  MapThreads threads_;
};

}  // namespace muster

#endif  // WORKER_INPUT_STREAMED_ROWS_H_
