#include "worker/input/data_order.h"

#include <numeric>
#include <utility>

#include "absl/numeric/int128.h"
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

absl::Span<const int64_t> DataOrder::Epoch(int64_t epoch) {
  if (orders_[0].epoch != epoch) std::swap(orders_[0], orders_[1]);
  if (orders_[0].epoch != epoch) {
    // Its memory goes before more is taken.
    orders_[0] = Order();
    orders_[0] = {epoch,
                  EpochPermutation(num_examples_, seed_, epoch, shuffle_)};
  }
  return orders_[0].rows;
}

}  // namespace muster
