#ifndef WORKER_TOWER_SUM_OF_SQUARES_H_
#define WORKER_TOWER_SUM_OF_SQUARES_H_

#include "absl/types/span.h"

namespace muster {

// The sum of the squares of all elements, in double.
double SumOfSquares(absl::Span<const float> values);

}  // namespace muster

#endif  // WORKER_TOWER_SUM_OF_SQUARES_H_
