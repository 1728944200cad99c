#include "worker/input/data_order.h"

#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/layer/counter_random.h"

namespace muster {
namespace {

// An unbiased number in [0, bound): Lemire, "Fast random integer generation in
// an interval" (2019). `*counter` goes on by the numbers drawn.
uint64_t Below(uint64_t bound, const CounterRandom& random, uint64_t* counter) {
  const uint64_t threshold = -bound % bound;
  while (true) {
    const absl::uint128 product =
        absl::uint128(random.Bits((*counter)++)) * bound;
    if (absl::Uint128Low64(product) >= threshold) {
      return absl::Uint128High64(product);
    }
  }
}

}  // namespace

std::vector<int64_t> EpochPermutation(int64_t n, uint64_t seed, int64_t epoch,
                                      bool shuffle) {
  std::vector<int64_t> permutation(n);
  std::iota(permutation.begin(), permutation.end(), 0);
  if (!shuffle) return permutation;
  const CounterRandom random(seed, absl::StrCat("shuffle/", epoch));
  uint64_t counter = 0;
  // Fisher and Yates.
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(permutation[i], permutation[Below(i + 1, random, &counter)]);
  }
  return permutation;
}

namespace {

absl::Status TooFewRows(int64_t num_examples,
                        const DataOrder::Options& options) {
  // Divided one by one: a product might overflow.
  const int64_t batch_size =
      num_examples / options.num_workers / options.batches_per_step;
  return absl::InvalidArgumentError(absl::StrCat(
      "input.batch_size: ", options.num_workers, " worker(s) with ",
      options.batches_per_step, " batch(es) of ", options.batch_size, " want ",
      options.num_workers, " * ", options.batches_per_step, " * ",
      options.batch_size, " training examples for one step, the data set has ",
      num_examples,
      batch_size > 0
          ? absl::StrCat(
                ": --set=input.batch_size=", batch_size,
                ", or, where that is set, "
                "--set=input.global_batch_size=",
                batch_size * options.num_workers * options.batches_per_step)
          : ", fewer than batches: train with fewer workers, towers or "
            "accumulated batches"));
}

}  // namespace

absl::Status DataOrder::Check(const Options& options) {
  if (options.batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.batch_size: wanted a positive number, found ",
                     options.batch_size));
  }
  if (options.batches_per_step < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("data order: wanted 1 or more batches a step, found ",
                     options.batches_per_step));
  }
  if (options.worker_index < 0 || options.worker_index >= options.num_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("data order: wanted a worker in [0, ", options.num_workers,
                     "), found worker ", options.worker_index));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataOrder> DataOrder::Create(int64_t num_examples,
                                            const Options& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  // Divided one by one: a product might overflow.
  const int64_t steps = num_examples / options.num_workers /
                        options.batches_per_step / options.batch_size;
  if (steps < 1) return TooFewRows(num_examples, options);
  return DataOrder(num_examples, options);
}

RowPosition DataOrder::BeginOf(const RowPosition& position) const {
  if (num_examples_ - position.rows >= step_rows()) return position;
  return {position.epoch + 1, 0};
}

RowPosition DataOrder::After(const RowPosition& position) const {
  RowPosition after = BeginOf(position);
  after.rows += step_rows();
  return after;
}

uint64_t DataOrder::StepNumber(const RowPosition& after) const {
  return static_cast<uint64_t>(after.epoch) *
             static_cast<uint64_t>(steps_per_epoch()) +
         static_cast<uint64_t>(after.rows / step_rows());
}

absl::Span<const int64_t> DataOrder::Epoch(const RowPosition& position) {
  const RowPosition begin = BeginOf(position);
  if (begin.epoch != epoch_) {
    permutation_ = EpochPermutation(num_examples_, options_.seed, begin.epoch,
                                    options_.shuffle);
    epoch_ = begin.epoch;
  }
  return permutation_;
}

}  // namespace muster
