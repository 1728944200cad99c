#ifndef WORKER_INPUT_ROW_POSITION_H_
#define WORKER_INPUT_ROW_POSITION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/training.pb.h"

namespace muster {

// How the rows of a run are ordered, which gives a DataPosition its kind.
enum class RowOrder {
  // "rows": one permutation an epoch (DataOrder).
  kPermutation,
  // "stream": as a stream has them (StreamedRows).
  kStream,
};

// How far all workers together have come in the order of the rows: what a
// DataPosition says.
struct RowPosition {
  // Epochs that are over.
  int64_t epoch = 0;
  // Rows of this epoch that are taken.
  int64_t rows = 0;
};

inline bool operator==(const RowPosition& a, const RowPosition& b) {
  return a.epoch == b.epoch && a.rows == b.rows;
}

inline bool operator<(const RowPosition& a, const RowPosition& b) {
  return a.epoch != b.epoch ? a.epoch < b.epoch : a.rows < b.rows;
}

// A position in which nothing is set is the beginning. Errors: InvalidArgument
// for the kind of another order, by name, and for numbers that are no counts.
absl::StatusOr<RowPosition> ReadRowPosition(
    const DataPosition& position, RowOrder order = RowOrder::kPermutation);

// `step_rows`: rows that one step of all workers takes.
DataPosition MakeDataPosition(const RowPosition& position, int64_t step_rows,
                              RowOrder order = RowOrder::kPermutation);

}  // namespace muster

#endif  // WORKER_INPUT_ROW_POSITION_H_
