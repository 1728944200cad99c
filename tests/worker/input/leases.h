#ifndef TESTS_WORKER_INPUT_LEASES_H_
#define TESTS_WORKER_INPUT_LEASES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "proto/row_ledger.pb.h"

namespace muster {

// The lease of these ranges: first place, rows.
inline RowLease LeaseOf(
    const std::vector<std::pair<int64_t, int64_t>>& ranges) {
  RowLease lease;
  for (const auto& [first, rows] : ranges) {
    RowRange* const range = lease.add_ranges();
    range->set_first(first);
    range->set_rows(rows);
  }
  return lease;
}

// `count` leases of so many rows, `stride` places from one to the next.
inline std::vector<RowLease> LeasesFrom(int64_t first, int64_t rows, int count,
                                        int64_t stride) {
  std::vector<RowLease> leases;
  for (int i = 0; i < count; ++i) {
    leases.push_back(LeaseOf({{first + i * stride, rows}}));
  }
  return leases;
}

inline StreamPass PassOf(int64_t pass, int64_t first) {
  StreamPass made;
  made.set_pass(pass);
  made.set_first(first);
  return made;
}

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_LEASES_H_
