#ifndef COMMON_BASE_FINITE_H_
#define COMMON_BASE_FINITE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// Returns the index of the first value that is NaN or infinite, or -1. Reads
// memory at about its speed.
int64_t FirstNonFinite(absl::Span<const float> values);

}  // namespace muster

#endif  // COMMON_BASE_FINITE_H_
