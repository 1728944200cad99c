#ifndef WORKER_INPUT_DATA_ORDER_H_
#define WORKER_INPUT_DATA_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// The order of one epoch: a permutation of 0 ... n - 1 that depends on (n,
// seed, epoch) only, the same on every machine; 0 ... n - 1 itself if not
// `shuffle`.
std::vector<int64_t> EpochPermutation(int64_t n, uint64_t seed, int64_t epoch,
                                      bool shuffle);

// The orders of a data set's rows, an epoch each. Those of two epochs are kept,
// so that steps about an epoch's end, and rows that come back after it, cost
// O(n) once. One thread at a time.
class DataOrder {
 public:
  static constexpr int kKeptEpochs = 2;

  DataOrder(int64_t num_examples, uint64_t seed, bool shuffle)
      : num_examples_(num_examples), seed_(seed), shuffle_(shuffle) {}

  int64_t num_examples() const { return num_examples_; }

  // The order of this epoch, valid until two others were asked for.
  absl::Span<const int64_t> Epoch(int64_t epoch);

 private:
  struct Order {
    int64_t epoch = -1;
    std::vector<int64_t> rows;
  };

  int64_t num_examples_;
  uint64_t seed_;
  bool shuffle_;
  // The first is the one that was asked for last.
  std::array<Order, kKeptEpochs> orders_;
};

}  // namespace muster

#endif  // WORKER_INPUT_DATA_ORDER_H_
