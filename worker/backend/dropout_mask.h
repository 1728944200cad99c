#ifndef WORKER_BACKEND_DROPOUT_MASK_H_
#define WORKER_BACKEND_DROPOUT_MASK_H_

#include <cstdint>

#include "common/base/split_mix64.h"

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

}  // namespace muster

#endif  // WORKER_BACKEND_DROPOUT_MASK_H_
