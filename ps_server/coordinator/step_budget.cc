#include "ps_server/coordinator/step_budget.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rows/row_ranges.h"
#include "ps_server/caller/count_range.h"

namespace muster {
namespace {

bool IsLimit(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

absl::Status StepBudget::Start(const CommitEpochRequest& commit) {
  StepBudget started;
  RETURN_IF_ERROR(started.ChangeStop(commit));
  started.steps_ = commit.global_step();
  started.examples_ = commit.examples();
  *this = started;
  return absl::OkStatus();
}

absl::Status StepBudget::ChangeStop(const CommitEpochRequest& commit) {
  const StopSpec& stop = commit.stop();
  if (!IsCount(stop.steps()) || !IsCount(commit.global_step()) ||
      !IsCount(commit.examples()) || !IsCount(commit.batch_size()) ||
      !IsCount(commit.epoch_examples()) || !IsLimit(stop.epochs()) ||
      !IsLimit(stop.seconds()) || !IsLimit(stop.target_accuracy())) {
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: a count or a stop condition is negative or "
                     "above ",
                     kMaxCount));
  }
  const double max_rows =
      stop.epochs() * static_cast<double>(commit.epoch_examples());
  if (stop.epochs() > 0 && (commit.batch_size() == 0 || max_rows < 1 ||
                            max_rows > static_cast<double>(kMaxCount))) {
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: stop.epochs ", stop.epochs(), " of ",
                     commit.epoch_examples(), " examples in batches of ",
                     commit.batch_size(), " is not a count of examples"));
  }
  max_steps_ = stop.steps();
  row_limit_ = stop.epochs() > 0
                   ? RowsOfEpochs(stop.epochs(), commit.epoch_examples())
                   : kMaxCount;
  return absl::OkStatus();
}

void StepBudget::Clear() { *this = StepBudget(); }

int64_t StepBudget::grants_left() const {
  if (max_steps_ == 0) return kMaxCount;
  return std::max<int64_t>(0, max_steps_ - steps_ - outstanding_);
}

bool StepBudget::TryGrant() {
  if (!IsStepLeft()) return false;
  ++outstanding_;
  return true;
}

void StepBudget::Return() {
  assert(outstanding_ > 0);
  --outstanding_;
}

void StepBudget::Report(int64_t examples) {
  Return();
  ++steps_;
  examples_ += examples;
}

}  // namespace muster
