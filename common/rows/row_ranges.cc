#include "common/rows/row_ranges.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/max_count.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

bool IsCount(int64_t number) { return number >= 0 && number <= kMaxCount; }

bool IsRange(const RowRange& range) {
  return IsCount(range.first()) && range.rows() >= 1 &&
         range.rows() <= kMaxCount - range.first();
}

absl::Status BadLedger(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("ledger of rows: ", what));
}

absl::Status CheckUndone(const RowLedger& ledger) {
  int64_t end = -1;
  for (const RowRange& range : ledger.undone()) {
    if (!IsRange(range) || range.first() <= end ||
        range.first() + range.rows() > ledger.front()) {
      return BadLedger(absl::StrCat(
          "undone has ", range.rows(), " rows from ", range.first(),
          " on; wanted ranges in order and apart from each other, before the "
          "front, which is ",
          ledger.front()));
    }
    end = range.first() + range.rows();
  }
  return absl::OkStatus();
}

absl::Status CheckPasses(const RowLedger& ledger) {
  const StreamPass* before = nullptr;
  for (const StreamPass& pass : ledger.passes()) {
    if (!IsCount(pass.pass()) || !IsCount(pass.first()) ||
        (before != nullptr &&
         (pass.pass() <= before->pass() || pass.first() <= before->first()))) {
      return BadLedger(absl::StrCat("pass ", pass.pass(), " begins at row ",
                                    pass.first(),
                                    "; wanted passes in ascending order"));
    }
    before = &pass;
  }
  return absl::OkStatus();
}

}  // namespace

int64_t RowsOfEpochs(double epochs, int64_t epoch_rows) {
  // Because 0.1 * 30 must be 3.
  constexpr double kEpsilon = 1e-6;
  const double rows = epochs * static_cast<double>(epoch_rows) + kEpsilon;
  return static_cast<int64_t>(std::min(rows, static_cast<double>(kMaxCount)));
}

int64_t NumRows(const RowLease& lease) {
  int64_t rows = 0;
  for (const RowRange& range : lease.ranges()) rows += range.rows();
  return rows;
}

bool operator==(const RowRange& a, const RowRange& b) {
  return a.first() == b.first() && a.rows() == b.rows();
}

bool operator==(const RowLease& a, const RowLease& b) {
  return std::equal(a.ranges().begin(), a.ranges().end(), b.ranges().begin(),
                    b.ranges().end(), [](const RowRange& x, const RowRange& y) {
                      return x == y;
                    });
}

int64_t PlaceOf(const RowLease& lease, int64_t i) {
  for (const RowRange& range : lease.ranges()) {
    if (i < range.rows()) return range.first() + i;
    i -= range.rows();
  }
  return -1;
}

std::string DescribeRows(const RowLease& lease) {
  if (lease.ranges().empty()) return "no rows";
  return absl::StrCat(
      "rows ", absl::StrJoin(lease.ranges(), ", ",
                             [](std::string* text, const RowRange& range) {
                               absl::StrAppend(
                                   text, range.first(), " to ",
                                   range.first() + range.rows() - 1);
                             }));
}

absl::Status CheckRows(const RowLease& lease) {
  if (lease.ranges_size() > kMaxLeaseRanges) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows of a step: ", lease.ranges_size(),
                     " ranges; wanted at most ", kMaxLeaseRanges));
  }
  for (const RowRange& range : lease.ranges()) {
    if (IsRange(range)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of a step: ", range.rows(), " rows from ", range.first(),
        " on; wanted 1 or more, of places from 0 "
        "to ",
        kMaxCount));
  }
  return absl::OkStatus();
}

absl::Status CheckLedger(const RowLedger& ledger) {
  if (!ledger.kind().empty() && ledger.kind() != "rows" &&
      ledger.kind() != "stream") {
    return BadLedger("kind is neither 'rows' nor 'stream'");
  }
  if (!IsCount(ledger.epoch_rows()) || !IsCount(ledger.front()) ||
      !IsCount(ledger.repeated()) || !IsCount(ledger.skipped()) ||
      !IsCount(ledger.known_from())) {
    return BadLedger(absl::StrCat("a count is negative or above ", kMaxCount));
  }
  RETURN_IF_ERROR(CheckUndone(ledger));
  return CheckPasses(ledger);
}

}  // namespace muster
