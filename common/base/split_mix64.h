#ifndef COMMON_BASE_SPLIT_MIX64_H_
#define COMMON_BASE_SPLIT_MIX64_H_

#include <cstdint>

namespace muster {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014): its generator is SplitMix64(seed + i * kSplitMix64Step)
// for i = 1, 2, ...
inline constexpr uint64_t kSplitMix64Step = 0x9E3779B97F4A7C15;

// Its finalizer: a bijection in which every bit of `z` turns half of the bits
// that come out.
constexpr uint64_t SplitMix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace muster

#endif  // COMMON_BASE_SPLIT_MIX64_H_
