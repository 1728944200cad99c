#ifndef WORKER_LAYER_COUNTER_RANDOM_H_
#define WORKER_LAYER_COUNTER_RANDOM_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/fingerprint.h"
#include "common/base/split_mix64.h"

namespace muster {

// A counter-based generator: value i is a function of (seed, name, i), so that
// values need no order and are the same on every machine. SplitMix64
// over a counter, keyed by seed and FNV-1a of the name. Immutable, thread-safe.
class CounterRandom {
 public:
  CounterRandom(uint64_t seed, absl::string_view name)
      : key_(SplitMix64(seed + kSplitMix64Step) ^
             SplitMix64(Fingerprint64(name))) {}

  // 64 uniform bits.
  uint64_t Bits(uint64_t i) const {
    return SplitMix64(key_ + (i + 1) * kSplitMix64Step);
  }

 private:
  const uint64_t key_;
};

}  // namespace muster

#endif  // WORKER_LAYER_COUNTER_RANDOM_H_
