#ifndef WORKER_LAYER_COUNTER_RANDOM_H_
#define WORKER_LAYER_COUNTER_RANDOM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace muster {

// A counter-based generator: value i is a function of (seed, name, i), so that
// values need no order and are the same on every machine. SplitMix64 (Steele,
// Lea and Flood, "Fast splittable pseudorandom number generators", 2014) over
// a counter, keyed by seed and FNV-1a of the name. Immutable, thread-safe.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, absl::string_view name)
      : key_(Mix(seed + kGolden) ^ Mix(Fnv1a(name))) {}

  // 64 uniform bits.
  uint64_t Bits(uint64_t i) const { return Mix(key_ + (i + 1) * kGolden); }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

  static uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  static uint64_t Fnv1a(absl::string_view text) {
    uint64_t hash = 0xCBF29CE484222325;
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    }
    return hash;
  }

  const uint64_t key_;
};

}  // namespace muster

#endif  // WORKER_LAYER_COUNTER_RANDOM_H_
