#ifndef WORKER_BACKEND_DROPOUT_MASK_H_
#define WORKER_BACKEND_DROPOUT_MASK_H_

#include <cstdint>

namespace muster {

// Which elements dropout keeps: a function of (seed, element) alone, so that
// every backend and every number of threads draws the same mask. SplitMix64
// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// 2014) over a counter. Immutable, thread-safe.
class DropoutMask {
 public:
  // REQUIRES: rate in [0, 1).
  DropoutMask(double rate, uint64_t seed)
      : threshold_(static_cast<uint32_t>(rate * 4294967296.0)),
        key_(Mix(seed + kGolden)) {}

  // Whether the element with this row-major index stays.
  bool Keeps(int64_t index) const {
    const uint64_t bits =
        Mix(key_ + (static_cast<uint64_t>(index) + 1) * kGolden);
    return static_cast<uint32_t>(bits >> 32) >= threshold_;
  }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  const uint32_t threshold_;
  const uint64_t key_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_DROPOUT_MASK_H_
