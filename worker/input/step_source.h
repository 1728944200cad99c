#ifndef WORKER_INPUT_STEP_SOURCE_H_
#define WORKER_INPUT_STEP_SOURCE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/rows/row_ranges.h"
#include "proto/row_ledger.pb.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"

namespace muster {

// Where an InputPipeline has the rows of a worker's steps from. One thread at a
// time, but for Stop and what is const.
class StepSource {
 public:
  struct Options {
    uint64_t seed = 0;
    // A data set's.
    bool shuffle = true;
    // A stream's: EndlessRecords' buffer.
    int64_t shuffle_buffer = 0;
    // Rows of one batch.
    int64_t batch_size = 1;
    // Batches of one local step.
    int64_t batches_per_step = 1;
    // Threads that prepare the rows of a step.
    int threads = 1;
    // Counts the bad records that others take the place of (IndexedRows and
    // StreamedRows say which); outlives the source. Null: they are errors.
    BadRecords* bad_records = nullptr;

    int64_t step_rows() const { return batch_size * batches_per_step; }
  };

  virtual ~StepSource() = default;

  // A batch without rows yet, with room for those of one batch.
  virtual Batch MakeBatch() const = 0;

  // Fills the batches of a step with the rows of its lease, one batch after the
  // other. Steady state allocates nothing. Errors: InvalidArgument for a lease
  // of another number of rows than the batches'; those of the data, the first
  // row's that cannot be read; Cancelled after Stop.
  virtual absl::Status Fill(const RowLease& lease,
                            absl::Span<Batch> batches) = 0;

  // Of a stream: the place of a pass's first row, before a lease of its rows;
  // what it has read itself it knows.
  virtual void SetPass(const StreamPass& /*pass*/) {}
  // The newest pass that it has begun to read; none: no stream.
  virtual std::optional<StreamPass> pass() const { return std::nullopt; }

  // Ends a Fill that is under way, and all later ones. From any thread.
  virtual void Stop() = 0;

  // Rows of one epoch; 0: not known.
  virtual int64_t epoch_rows() const = 0;
};

// Errors: InvalidArgument for a lease, which comes from another task, that is
// none of so many rows.
inline absl::Status CheckLease(const RowLease& lease, int64_t rows) {
  RETURN_IF_ERROR(CheckRows(lease));
  if (NumRows(lease) == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rows of a step: wanted ", rows, ", leased are ",
                   NumRows(lease), " (", DescribeRows(lease), ")"));
}

}  // namespace muster

#endif  // WORKER_INPUT_STEP_SOURCE_H_
