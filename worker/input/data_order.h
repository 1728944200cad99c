#ifndef WORKER_INPUT_DATA_ORDER_H_
#define WORKER_INPUT_DATA_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/input/row_position.h"

namespace muster {

// The order of one epoch: a permutation of 0 ... n - 1 that depends on (n,
// seed, epoch) only, the same on every machine; 0 ... n - 1 itself if not
// `shuffle`.
std::vector<int64_t> EpochPermutation(int64_t n, uint64_t seed, int64_t epoch,
                                      bool shuffle);

// Which examples a worker reads at each of its steps. All workers step through
// one permutation an epoch in lock-step: with r = c*b rows a step, worker i of
// N takes rows p + i*r ... + r of it at the step that begins at row p, its c
// batches (those of its towers, and those that it accumulates) one after the
// other; the next step begins at row p + N*r. An epoch may be gone on with at
// any row. The rest of it, when fewer than N*r rows are left (others in each
// epoch), is left out, and nothing else, whatever b, c and N were before. One
// thread at a time, but for what is const.
class DataOrder {
 public:
  struct Options {
    uint64_t seed = 0;
    bool shuffle = true;
    // b, rows of one batch.
    int64_t batch_size = 1;
    // c, batches of one step of one worker.
    int64_t batches_per_step = 1;
    // i and N.
    int64_t worker_index = 0;
    int64_t num_workers = 1;
  };

  // Errors: InvalidArgument if a number is out of range.
  static absl::Status Check(const Options& options);

  // Errors: Check's; InvalidArgument if the data set is
  // smaller than one step of all workers.
  static absl::StatusOr<DataOrder> Create(int64_t num_examples,
                                          const Options& options);

  // Steps that each worker makes in one epoch.
  int64_t steps_per_epoch() const { return num_examples_ / step_rows(); }

  // N*r.
  int64_t step_rows() const { return rows_per_step_ * options_.num_workers; }

  // The position after the step that is taken from `position`.
  RowPosition After(const RowPosition& position) const;

  // The number of the step that ends at `after`: one of its own for each step
  // of a worker in a run. 1, 2, ... if all were taken with one N*r.
  uint64_t StepNumber(const RowPosition& after) const;

  // The indices of the step that begins at `position`, or with the next epoch
  // if too few rows are left of this one: those of Epoch from FirstPlace on.
  // Valid until the next call. REQUIRES: counts.
  absl::Span<const int64_t> Rows(const RowPosition& position) {
    return Epoch(position).subspan(FirstPlace(position), rows_per_step_);
  }

  // The order of that step's epoch. Valid until the next call. Going on to
  // another epoch costs O(n), another step nothing.
  absl::Span<const int64_t> Epoch(const RowPosition& position);
  // Where this worker's rows of the step begin in it.
  int64_t FirstPlace(const RowPosition& position) const {
    return BeginOf(position).rows + options_.worker_index * rows_per_step_;
  }

  // Where the step that is taken from `position` begins: there, or with the
  // next epoch.
  RowPosition BeginOf(const RowPosition& position) const;

 private:
  DataOrder(int64_t num_examples, const Options& options)
      : num_examples_(num_examples),
        rows_per_step_(options.batch_size * options.batches_per_step),
        options_(options) {}

  int64_t num_examples_;
  // r.
  int64_t rows_per_step_;
  Options options_;
  // The order of epoch_.
  std::vector<int64_t> permutation_;
  int64_t epoch_ = -1;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_ORDER_H_
