#ifndef COMMON_BASE_MAX_COUNT_H_
#define COMMON_BASE_MAX_COUNT_H_

#include <cstdint>

namespace muster {

// The largest count (steps, examples, epochs, updates) that is taken from
// outside: above any run, and thousands of them can be added without overflow.
inline constexpr int64_t kMaxCount = 1'000'000'000'000'000;

}  // namespace muster

#endif  // COMMON_BASE_MAX_COUNT_H_
