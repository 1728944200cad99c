#ifndef WORKER_INPUT_INDEXED_ROWS_H_
#define WORKER_INPUT_INDEXED_ROWS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/row_ledger.pb.h"
#include "worker/input/batch.h"
#include "worker/input/data_order.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/map_threads.h"
#include "worker/input/step_source.h"

namespace muster {

// The rows of a data set by place, each epoch's in the order of DataOrder. A
// lease may go over an epoch's end.
class IndexedRows : public StepSource {
 public:
  // `data_set` outlives it. In the place of a bad row is the next good one in
  // the epoch's order, whoever has that: a function of seed, epoch and place,
  // like all else. Errors: InvalidArgument if the data set is smaller than one
  // step of this worker, or the orders are too large for the memory.
  static absl::StatusOr<std::unique_ptr<StepSource>> Create(
      const DataSet* data_set, const Options& options);

  Batch MakeBatch() const override;
  absl::Status Fill(const RowLease& lease, absl::Span<Batch> batches) override;
  void Stop() override { threads_.Stop(); }
  int64_t epoch_rows() const override { return order_.num_examples(); }

 private:
  IndexedRows(const DataSet* data_set, const Options& options);

  // Fills a step's rows from row `begin` of its batches on with those of
  // `range`, which is of one epoch.
  absl::Status FillRange(const RowRange& range, int64_t begin,
                         absl::Span<Batch> batches);
  // Reads the row at this index of an epoch's order.
  absl::Status Read(absl::Span<const int64_t> order, int64_t index,
                    int64_t epoch, const ExampleMemory& into) const;

  // Constant after construction.
  const DataSet* const data_set_;
  const Options options_;

  DataOrder order_;
  MapThreads threads_;
};

}  // namespace muster

#endif  // WORKER_INPUT_INDEXED_ROWS_H_
