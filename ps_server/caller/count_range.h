#ifndef PS_SERVER_CALLER_COUNT_RANGE_H_
#define PS_SERVER_CALLER_COUNT_RANGE_H_

#include <cstdint>

namespace muster {

// The largest count (steps, examples, epochs, updates) that is taken from
// outside: above any run, and thousands of them can be added without overflow.
inline constexpr int64_t kMaxCount = 1'000'000'000'000'000;

// How far a model epoch may be ahead of the one before. The coordinator allows
// twice as much for what shards hold, so that it finds a larger epoch than any.
inline constexpr int64_t kMaxEpochJump = 1'000'000'000;

inline bool IsCount(int64_t number) {
  return number >= 0 && number <= kMaxCount;
}

}  // namespace muster

#endif  // PS_SERVER_CALLER_COUNT_RANGE_H_
