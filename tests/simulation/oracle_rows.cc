#include "tests/simulation/oracle_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rows/row_ranges.h"

namespace muster {
namespace {

bool IsDone(const RowLedger& ledger, int64_t place) {
  return place < ledger.front() &&
         std::none_of(ledger.undone().begin(), ledger.undone().end(),
                      [place](const RowRange& range) {
                        return place >= range.first() &&
                               place < range.first() + range.rows();
                      });
}

std::string Describe(const RowLedger& ledger) {
  RowLease undone;
  *undone.mutable_ranges() = ledger.undone();
  return absl::StrCat("a ledger with the front ", ledger.front(), ", ",
                      DescribeRows(undone), " undone and ", ledger.repeated(),
                      " repeated");
}

}  // namespace

int64_t NumDone(const RowLedger& ledger) {
  int64_t done = ledger.front();
  for (const RowRange& range : ledger.undone()) done -= range.rows();
  return done;
}

std::string OracleRows::Granted(uint64_t incarnation, const StepReply& reply) {
  if (reply.leases().empty()) {
    return absl::StrCat("incarnation ", incarnation,
                        " is granted a step of no rows");
  }
  leased_[{incarnation, reply.model_epoch()}].insert(
      reply.leases(0).SerializeAsString());
  return "";
}

std::string OracleRows::StepTrains(uint64_t incarnation, int64_t epoch,
                                   int64_t step, const RowLease& rows) {
  rows_of_[{incarnation, step}] = rows;
  const std::set<std::string>& leased = leased_[{incarnation, epoch}];
  if (leased.count(rows.SerializeAsString()) > 0) return "";
  return absl::StrCat("incarnation ", incarnation, " trains in step ", step,
                      " on ", DescribeRows(rows),
                      ", which were not leased to it for a step");
}

RowVisits OracleRows::VisitsOf(const HeldRows& held) const {
  RowVisits visits = held.before;
  for (const auto& step : held.steps) {
    const auto rows = rows_of_.find(step);
    if (rows == rows_of_.end()) continue;
    for (int64_t i = 0; i < NumRows(rows->second); ++i) {
      ++visits[PlaceOf(rows->second, i)];
    }
  }
  return visits;
}

std::string OracleRows::CheckNewest(const RowLedger& ledger,
                                    const std::vector<HeldRows>& parts,
                                    const std::set<uint64_t>& starts,
                                    const PushSums::Steps& uncounted) const {
  if (parts.empty()) return "";
  std::map<uint64_t, int64_t> newest;
  for (const auto& step : parts.front().steps) {
    const bool is_whole = std::all_of(
        parts.begin(), parts.end(),
        [&step](const HeldRows& part) { return part.steps.count(step) > 0; });
    if (is_whole && starts.count(step.first) > 0) {
      newest[step.first] = step.second;
    }
  }
  for (const auto& step : newest) {
    const auto rows = rows_of_.find(step);
    if (rows == rows_of_.end() || uncounted.count(step) > 0) continue;
    for (int64_t i = 0; i < NumRows(rows->second); ++i) {
      if (IsDone(ledger, PlaceOf(rows->second, i))) continue;
      return absl::StrCat(Describe(ledger), " lacks ",
                          DescribeRows(rows->second),
                          ", which all shards hold in step ", step.second,
                          " of incarnation ", step.first);
    }
  }
  return "";
}

std::string OracleRows::CheckLedger(const RowLedger& ledger,
                                    const std::vector<HeldRows>& parts) const {
  const absl::Status checked = muster::CheckLedger(ledger);
  if (!checked.ok()) return std::string(checked.message());
  for (const HeldRows& part : parts) {
    const RowVisits visits = VisitsOf(part);
    int64_t repeated = 0;
    for (const auto& [place, times] : visits) {
      repeated += times - (IsDone(ledger, place) ? 1 : 0);
    }
    for (int64_t place = 0; place < ledger.front(); ++place) {
      if (!IsDone(ledger, place) || visits.count(place) > 0) continue;
      return absl::StrCat(Describe(ledger), " has row ", place,
                          " as done, which the parameters do not have");
    }
    if (repeated <= ledger.repeated()) continue;
    return absl::StrCat(Describe(ledger), " is of parameters that have ",
                        repeated, " rows more");
  }
  return "";
}

}  // namespace muster
