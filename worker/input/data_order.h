#ifndef WORKER_INPUT_DATA_ORDER_H_
#define WORKER_INPUT_DATA_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace muster {

// The order of one epoch: a permutation of 0 ... n - 1 that depends on (n,
// seed, epoch) only, the same on every machine; 0 ... n - 1 itself if not
// `shuffle`.
std::vector<int64_t> EpochPermutation(int64_t n, uint64_t seed, int64_t epoch,
                                      bool shuffle);

// Which examples a worker reads at each of its steps. All workers step through
// one permutation an epoch in lock-step: with r = c*b rows a step, worker i of
// N takes rows s*N*r + i*r ... + r of it at its step s, its c batches (those of
// its towers, and those that it accumulates) one after the other. The rest (n
// mod N*r rows, others in each epoch) is left out. One thread at a time.
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

  // Errors: InvalidArgument if a number is out of range, or the data set is
  // smaller than one step of all workers.
  static absl::StatusOr<DataOrder> Create(int64_t num_examples,
                                          const Options& options);

  // Steps that each worker makes in one epoch.
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // The indices of local step `step`, counted from 0 over all epochs. Valid
  // until the next call. REQUIRES: step >= 0. Going on to another epoch costs
  // O(n), another step nothing.
  absl::Span<const int64_t> Rows(int64_t step);

 private:
  DataOrder(int64_t num_examples, int64_t steps_per_epoch,
            const Options& options)
      : num_examples_(num_examples),
        steps_per_epoch_(steps_per_epoch),
        rows_per_step_(options.batch_size * options.batches_per_step),
        options_(options) {}

  int64_t num_examples_;
  int64_t steps_per_epoch_;
  // r.
  int64_t rows_per_step_;
  Options options_;
  // Of epoch_.
  std::vector<int64_t> permutation_;
  int64_t epoch_ = -1;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_ORDER_H_
