#ifndef COMMON_BASE_FINITE_H_
#define COMMON_BASE_FINITE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// Returns the index of the first value that is NaN or infinite, or -1. Reads
// memory at about its speed.
int64_t FirstNonFinite(absl::Span<const float> values);

// Copies `values` to `dst`, which they do not overlap, and returns whether all
// of them are finite; in the time of the copy alone.
bool CopyFinite(absl::Span<const float> values, float* dst);

}  // namespace muster

#endif  // COMMON_BASE_FINITE_H_
