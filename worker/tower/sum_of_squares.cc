#include "worker/tower/sum_of_squares.h"

#include <array>
#include <numeric>

namespace muster {

// Eight sums: one alone would wait for each addition before the next.
double SumOfSquares(absl::Span<const float> values) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  for (; values.size() >= kLanes; values.remove_prefix(kLanes)) {
    for (size_t i = 0; i < kLanes; ++i) {
      sums[i] += static_cast<double>(values[i]) * values[i];
    }
  }
  for (const float value : values) {
    sums[0] += static_cast<double>(value) * value;
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace muster
