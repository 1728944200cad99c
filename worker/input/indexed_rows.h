#ifndef WORKER_INPUT_INDEXED_ROWS_H_
#define WORKER_INPUT_INDEXED_ROWS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/bad_records.h"
#include "worker/input/batch.h"
#include "worker/input/data_order.h"
#include "worker/input/data_set/data_set.h"
#include "worker/input/map_threads.h"
#include "worker/input/row_position.h"
#include "worker/input/step_source.h"

namespace muster {

// The rows of a data set in the order of DataOrder.
class IndexedRows : public StepSource {
 public:
  // `data_set` and `bad_records` outlive it; a null `bad_records`: a bad row is
  // an error. Else the next good one in the epoch's order takes its place, also
  // if that is another worker's: a function of seed, epoch and place, like all
  // else. Errors: those of DataOrder::Create; InvalidArgument if the order is
  // too large for the memory.
  static absl::StatusOr<std::unique_ptr<StepSource>> Create(
      const DataSet* data_set, const DataOrder::Options& order, int threads,
      BadRecords* bad_records);

  Batch MakeBatch() const override;
  absl::StatusOr<RowPosition> Fill(const RowPosition& position,
                                   absl::Span<Batch> batches) override;
  void Stop() override { threads_.Stop(); }
  uint64_t StepNumber(const RowPosition& after) const override {
    return order_.StepNumber(after);
  }
  int64_t steps_per_epoch() const override { return order_.steps_per_epoch(); }
  int64_t step_rows() const override { return order_.step_rows(); }
  RowOrder order() const override { return RowOrder::kPermutation; }

 private:
  IndexedRows(const DataSet* data_set, DataOrder order, int64_t batch_size,
              int threads, BadRecords* bad_records);

  // Reads the row at this place of an epoch's order.
  absl::Status Read(absl::Span<const int64_t> order, int64_t place,
                    int64_t epoch, const ExampleMemory& into) const;

  // Constant after construction.
  const DataSet* const data_set_;
  const int64_t batch_size_;
  BadRecords* const bad_records_;

  DataOrder order_;
  MapThreads threads_;
};

}  // namespace muster

#endif  // WORKER_INPUT_INDEXED_ROWS_H_
