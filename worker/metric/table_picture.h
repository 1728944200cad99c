#ifndef WORKER_METRIC_TABLE_PICTURE_H_
#define WORKER_METRIC_TABLE_PICTURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/metric/metric_result.h"

namespace muster {

// A picture in grey, uint8 [side, side], square cell for square cell.
struct TablePicture {
  int64_t side = 0;
  std::vector<uint8_t> pixels;
};

// Draws a square table of counts: the larger a count's part of its row, the
// darker its cell. White is none, black all of the row; a row without counts is
// white. Two tables of one size have pictures of one size.
// Errors: InvalidArgument (no row, or not as many columns as rows).
absl::StatusOr<TablePicture> DrawTable(const MetricResult::Table& table);

}  // namespace muster

#endif  // WORKER_METRIC_TABLE_PICTURE_H_
