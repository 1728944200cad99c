#ifndef WORKER_CLIENT_SUMMED_ROWS_H_
#define WORKER_CLIENT_SUMMED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// Gradients of rows, each id once.
struct SummedRows {
  std::vector<int64_t> ids;
  std::vector<float> gradients;
};

// The rows by id (signed), with the sum of the gradients of equal ids, in the
// order in which they are given.
//   ids [n], gradients [n, dim].
SummedRows SumEqualIds(absl::Span<const int64_t> ids,
                       absl::Span<const float> gradients, int64_t dim);

}  // namespace muster

#endif  // WORKER_CLIENT_SUMMED_ROWS_H_
