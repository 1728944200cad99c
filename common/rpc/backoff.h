#ifndef COMMON_RPC_BACKOFF_H_
#define COMMON_RPC_BACKOFF_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace muster {

// The pauses before each next attempt: exponential with full jitter, so
// that workers that lost a ps together do not come back together. The pause
// after attempt n is uniform in [0, min(max, initial * 2^n)], but at
// least min.
// State only: it neither waits nor reads a clock. Not thread-safe.
class Backoff {
 public:
  struct Options {
    absl::Duration initial = absl::Milliseconds(100);
    absl::Duration max = absl::Seconds(2);
    // Never a busy loop, however the dice fall.
    absl::Duration min = absl::Milliseconds(5);
  };

  // The same seed gives the same pauses.
  Backoff(const Options& options, uint64_t seed)
      : options_(options), random_(seed), limit_(options.initial) {}

  // The pause before the next attempt.
  absl::Duration Next();

  // After a success.
  void Reset() { limit_ = options_.initial; }

 private:
  Options options_;
  std::mt19937_64 random_;
  absl::Duration limit_;
};

}  // namespace muster

#endif  // COMMON_RPC_BACKOFF_H_
