#ifndef TESTS_SIMULATION_ORACLE_ROWS_H_
#define TESTS_SIMULATION_ORACLE_ROWS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/coordination_service.pb.h"
#include "proto/row_ledger.pb.h"
#include "tests/simulation/push_sums.h"

namespace muster {

// How often each row, by its place, was trained on.
using RowVisits = std::map<int64_t, int64_t>;

// What one part of a ps task's shard was made of: what it held when the epoch
// began, and the steps since.
struct HeldRows {
  RowVisits before;
  PushSums::Steps steps;
};

// Judges rows by the parameters: which rows each step was computed from, which
// steps a shard's counters are made of, and whether a ledger says the same.
// Each check returns the broken promise; "" if there is none.
class OracleRows {
 public:
  // A step is granted, as ps task 0 says so.
  std::string Granted(uint64_t incarnation, const StepReply& reply);
  std::string StepTrains(uint64_t incarnation, int64_t epoch, int64_t step,
                         const RowLease& rows);

  RowVisits VisitsOf(const HeldRows& held) const;
  // Of each part: what the ledger has as done was trained on, and all else no
  // more often than the ledger says.
  std::string CheckLedger(const RowLedger& ledger,
                          const std::vector<HeldRows>& parts) const;
  // The ledger has the rows of the newest step that all parts hold of each
  // start in `starts`, but for those in `uncounted`.
  std::string CheckNewest(const RowLedger& ledger,
                          const std::vector<HeldRows>& parts,
                          const std::set<uint64_t>& starts,
                          const PushSums::Steps& uncounted) const;

 private:
  // The leases of steps, by the worker's incarnation and the epoch.
  std::map<std::pair<uint64_t, int64_t>, std::set<std::string>> leased_;
  std::map<std::pair<uint64_t, int64_t>, RowLease> rows_of_;
};

// The rows that a ledger has as done.
int64_t NumDone(const RowLedger& ledger);

}  // namespace muster

#endif  // TESTS_SIMULATION_ORACLE_ROWS_H_
