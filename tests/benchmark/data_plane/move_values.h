#ifndef TESTS_BENCHMARK_DATA_PLANE_MOVE_VALUES_H_
#define TESTS_BENCHMARK_DATA_PLANE_MOVE_VALUES_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// The loads and stores of an update of `elements` values without arithmetic, in
// the vectors of an update rule: a gradient's values go to the parameter, the
// parameter's to the first slot, its to the next, the last ones are lost.
void MoveValues(const float* gradient, float* parameter,
                absl::Span<float* const> slots, int64_t elements);

}  // namespace muster

#endif  // TESTS_BENCHMARK_DATA_PLANE_MOVE_VALUES_H_
