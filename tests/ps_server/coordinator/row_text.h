#ifndef TESTS_PS_SERVER_COORDINATOR_ROW_TEXT_H_
#define TESTS_PS_SERVER_COORDINATOR_ROW_TEXT_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/row_ledger.pb.h"

namespace muster {

// "0+10,30+5": the rows of ranges.
template <typename Ranges>
std::string RangesText(const Ranges& ranges) {
  return absl::StrJoin(
      ranges, ",", [](std::string* text, const RowRange& range) {
        absl::StrAppend(text, range.first(), "+", range.rows());
      });
}

// "0+10 10+5,30+5": leases, one after the other.
template <typename Leases>
std::string LeasesText(const Leases& leases) {
  return absl::StrJoin(leases, " ",
                       [](std::string* text, const RowLease& lease) {
                         absl::StrAppend(text, RangesText(lease.ranges()));
                       });
}

inline RowLease MakeLease(int64_t first, int64_t rows) {
  RowLease lease;
  lease.add_ranges()->set_first(first);
  lease.mutable_ranges(0)->set_rows(rows);
  return lease;
}

inline RowLedger MakeLedger(int64_t front) {
  RowLedger ledger;
  ledger.set_front(front);
  return ledger;
}

}  // namespace muster

#endif  // TESTS_PS_SERVER_COORDINATOR_ROW_TEXT_H_
