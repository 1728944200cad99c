#ifndef WORKER_INPUT_MAP_ROW_RANDOM_H_
#define WORKER_INPUT_MAP_ROW_RANDOM_H_

#include <cassert>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "common/base/split_mix64.h"

namespace muster {

// The random numbers of one example in one epoch. They are a function of (seed,
// epoch, example, stage) and of how many were drawn before, so that a row's
// bits depend neither on the thread nor on the worker that maps it. SplitMix64
// over a counter. A value type; a copy draws the same numbers again.
class RowRandom {
 public:
  RowRandom(uint64_t seed, int64_t epoch, int64_t example)
      : RowRandom(
            Fold(Fold(SplitMix64(seed + kSplitMix64Step), epoch), example)) {}

  // The numbers of the chain's stage `stage`. They do not depend on what the
  // stages before it drew.
  RowRandom ForStage(int64_t stage) const {
    return RowRandom(Fold(key_, stage));
  }

  // A number in [0, bound). Its bias is less than bound / 2^64.
  // REQUIRES: bound > 0.
  int64_t Below(int64_t bound) {
    assert(bound > 0);
    return static_cast<int64_t>(
        absl::Uint128High64(absl::uint128(Bits()) * bound));
  }

  // A multiple of 2^-53 in [0, 1).
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

 private:
  explicit RowRandom(uint64_t key) : key_(key) {}

  static uint64_t Fold(uint64_t key, int64_t value) {
    return SplitMix64(
        key + SplitMix64(static_cast<uint64_t>(value) + kSplitMix64Step));
  }

  uint64_t Bits() { return SplitMix64(key_ + ++drawn_ * kSplitMix64Step); }

  uint64_t key_;
  uint64_t drawn_ = 0;
};

}  // namespace muster

#endif  // WORKER_INPUT_MAP_ROW_RANDOM_H_
