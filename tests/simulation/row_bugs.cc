#include "tests/simulation/row_bugs.h"

#include <algorithm>

#include "common/rows/row_ranges.h"

namespace muster {

void RowBugs::Forge(StepRequest* request) {
  Given& given = given_[KeyOf(request->sender())];
  if (given.shown.has_value() && request->rows() == *given.shown) {
    *request->mutable_rows() = given.rows;
  }
  if (request->abandoned() || request->late()) {
    returned_.push_back(request->rows());
  }
  given.request = *request;
}

void RowBugs::Forge(const Sender& asker, StepReply* reply) {
  if (!reply->granted() || reply->leases().empty()) return;
  const TaskKey task = KeyOf(asker);
  Given& given = given_[task];
  // A repeated answer.
  if (given.rows != reply->leases(0)) {
    given.rows = reply->leases(0);
    given.shown = OtherRows(task, given.rows);
  }
  if (given.shown.has_value()) *reply->mutable_leases(0) = *given.shown;
}

std::optional<RowLease> RowBugs::OtherRows(const TaskKey& task,
                                           const RowLease& given) {
  if (bug_ == Bug::kRowsGivenTwice) {
    for (const auto& [other, theirs] : given_) {
      if (other == task || NumRows(theirs.rows) != NumRows(given)) continue;
      return theirs.rows;
    }
  }
  if (bug_ != Bug::kRowsReturnedTwice) return std::nullopt;
  const auto again = std::find_if(
      returned_.begin(), returned_.end(), [&](const RowLease& rows) {
        return rows != given && NumRows(rows) == NumRows(given);
      });
  if (again == returned_.end()) return std::nullopt;
  RowLease rows = *again;
  returned_.erase(again);
  return rows;
}

std::optional<StepRequest> RowBugs::LoseRowsOf(
    const RegisterRequest& request) const {
  const auto given = given_.find(KeyOf(request.sender()));
  if (bug_ != Bug::kRowsLostOnTakeover || given == given_.end() ||
      request.takeover() == 0 ||
      given->second.request.sender().incarnation() >=
          request.sender().incarnation()) {
    return std::nullopt;
  }
  StepRequest lost = given->second.request;
  lost.set_step(lost.step() + 1);
  lost.set_abandoned(true);
  lost.set_skipped(true);
  *lost.mutable_rows() = given->second.rows;
  return lost;
}

}  // namespace muster
