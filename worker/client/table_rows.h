#ifndef WORKER_CLIENT_TABLE_ROWS_H_
#define WORKER_CLIENT_TABLE_ROWS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace muster {

// Rows of one table (by its number in the model) that are pulled: ids [n],
// which may repeat, and where the values go, [n, dim]; the caller's memory.
struct TableRows {
  int table = 0;
  absl::Span<const int64_t> ids;
  absl::Span<float> values;
};

// Gradients of rows of one table: distinct ids [n], gradients [n, dim].
struct RowGradients {
  int table = 0;
  absl::Span<const int64_t> ids;
  absl::Span<const float> gradients;
};

}  // namespace muster

#endif  // WORKER_CLIENT_TABLE_ROWS_H_
