#include "ps_server/coordinator/unsaved_steps.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps_server/caller/count_range.h"

namespace muster {
namespace {

// Three times as long as it takes until it is said again.
constexpr absl::Duration kOverdueTime = absl::Seconds(90);

}  // namespace

absl::Status UnsavedSteps::Start(const CommitEpochRequest& commit,
                                 absl::Time now) {
  const double seconds = commit.save_every_seconds();
  if (!IsCount(commit.save_every_steps()) || !std::isfinite(seconds) ||
      seconds < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("commit epoch: a save every ", commit.save_every_steps(),
                     " steps and ", seconds, " s: wanted 0 or more"));
  }
  saves_ = commit.saves();
  awaits_last_save_ = saves_;
  every_steps_ = commit.save_every_steps();
  every_ = absl::Seconds(seconds);
  saved_step_ = commit.global_step();
  saved_at_ = now;
  has_saved_ = false;
  return absl::OkStatus();
}

void UnsavedSteps::OnSaved(int64_t global_step, absl::Time now) {
  if (global_step < saved_step_) return;
  saved_step_ = global_step;
  saved_at_ = now;
  has_saved_ = true;
}

void UnsavedSteps::OnOverdue(std::string what, absl::Time now) {
  overdue_ = std::move(what);
  overdue_until_ = overdue_.empty() ? absl::InfinitePast() : now + kOverdueTime;
}

bool UnsavedSteps::IsSaveDue(int64_t steps, absl::Time now) const {
  if (!saves_) return false;
  return (every_steps_ > 0 && steps - saved_step_ >= every_steps_) ||
         (every_ > absl::ZeroDuration() && now - saved_at_ >= every_);
}

std::string UnsavedSteps::Describe(int64_t steps) const {
  std::string interval;
  if (every_steps_ > 0) {
    absl::StrAppend(&interval, "checkpoint.every_steps: ", every_steps_);
  }
  if (every_ > absl::ZeroDuration()) {
    absl::StrAppend(
        &interval, interval.empty() ? "" : ", ",
        "checkpoint.every_seconds: ", absl::ToDoubleSeconds(every_));
  }
  return absl::StrCat(steps - saved_step_, " steps since the save at step ",
                      saved_step_, interval.empty() ? "" : " (", interval,
                      interval.empty() ? "" : ")");
}

}  // namespace muster
