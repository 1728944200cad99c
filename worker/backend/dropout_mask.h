#ifndef WORKER_BACKEND_DROPOUT_MASK_H_
#define WORKER_BACKEND_DROPOUT_MASK_H_

#include <algorithm>
#include <cstdint>

#include "common/base/split_mix64.h"
#include "worker/backend/element_runs.h"

namespace muster {

// Which elements dropout keeps: a function of (seed, element) alone, so that
// every backend and every number of threads draws the same mask. SplitMix64
// over a counter. Immutable, thread-safe. constexpr: nvcc lets kernels call it.
class DropoutMask {
 public:
  // REQUIRES: rate in [0, 1).
  constexpr DropoutMask(double rate, uint64_t seed)
      : threshold_(static_cast<uint32_t>(rate * 4294967296.0)),
        key_(SplitMix64(seed + kSplitMix64Step)) {}

  // Whether the element with this row-major index stays.
  constexpr bool Keeps(int64_t index) const {
    const uint64_t bits =
        SplitMix64(key_ + (static_cast<uint64_t>(index) + 1) * kSplitMix64Step);
    return static_cast<uint32_t>(bits >> 32) >= threshold_;
  }

 private:
  const uint32_t threshold_;
  const uint64_t key_;
};

// Sets mask[i] for each i in [begin, end): whether the i-th element of `runs`
// stays.
inline void FillMask(const DropoutMask& dropout, const ElementRuns& runs,
                     int64_t begin, int64_t end, uint8_t* mask) {
  for (int64_t i = begin; i < end;) {
    const int64_t offset = runs.IndexOf(i) - i;
    const int64_t run_end = std::min(end, (i / runs.length + 1) * runs.length);
    for (; i < run_end; ++i) mask[i] = dropout.Keeps(offset + i) ? 1 : 0;
  }
}

}  // namespace muster

#endif  // WORKER_BACKEND_DROPOUT_MASK_H_
