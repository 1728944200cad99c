#ifndef PS_SERVER_CALLER_COUNT_RANGE_H_
#define PS_SERVER_CALLER_COUNT_RANGE_H_

#include <cstdint>

#include "common/base/max_count.h"

namespace muster {

// How far a model epoch may be ahead of the one before. The coordinator allows
// twice as much for what shards hold, so that it finds a larger epoch than any.
inline constexpr int64_t kMaxEpochJump = 1'000'000'000;

inline bool IsCount(int64_t number) {
  return number >= 0 && number <= kMaxCount;
}

}  // namespace muster

#endif  // PS_SERVER_CALLER_COUNT_RANGE_H_
