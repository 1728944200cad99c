#ifndef COMMON_ROWS_ROW_RANGES_H_
#define COMMON_ROWS_ROW_RANGES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/row_ledger.pb.h"

namespace muster {

// The most ranges of one lease: a step of pieces that others gave back.
inline constexpr int kMaxLeaseRanges = 64;

// Rows of so many epochs, a part of a row left out, at most kMaxCount.
// REQUIRES: neither is negative.
int64_t RowsOfEpochs(double epochs, int64_t epoch_rows);

int64_t NumRows(const RowLease& lease);

bool operator==(const RowRange& a, const RowRange& b);
bool operator==(const RowLease& a, const RowLease& b);
inline bool operator!=(const RowLease& a, const RowLease& b) {
  return !(a == b);
}

// The place of its row `i`. REQUIRES: 0 <= i < NumRows(lease).
int64_t PlaceOf(const RowLease& lease, int64_t i);

// "rows 100 to 131, 7 to 9".
std::string DescribeRows(const RowLease& lease);

// A lease that came from outside. Errors: InvalidArgument with what was wanted,
// unless it has at most kMaxLeaseRanges ranges of one row or more, of places
// from 0 to kMaxCount.
absl::Status CheckRows(const RowLease& lease);

// A ledger that came from outside. Errors: InvalidArgument with the field and
// what was wanted: a known kind, counts in range, ranges and passes in order
// that do not overlap and are before the front.
absl::Status CheckLedger(const RowLedger& ledger);

}  // namespace muster

#endif  // COMMON_ROWS_ROW_RANGES_H_
