#include "ps_server/coordinator/save_requests.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

int64_t SaveRequests::Ask(int32_t ps_task, absl::Time now) {
  if (askers_.empty()) {
    wanted_ = raised_ + 1;
    drain_until_ = now + kDrainTime;
  }
  if (askers_.insert(ps_task).second) pause_until_ = now + kLongestPause;
  return wanted_;
}

std::pair<int64_t, bool> SaveRequests::Raise() {
  if (HasDue()) return {wanted_, false};
  if (raised_ > answered_) return {raised_, false};
  step_was_under_way_ = false;
  return {++raised_, true};
}

bool SaveRequests::Answer(int64_t number, absl::string_view error) {
  if (number <= answered_ || number > raised_) return false;
  answered_ = number;
  error_ = std::string(error);
  if (error_.empty() && step_was_under_way_) {
    error_ = absl::StrCat("a step was under way for longer than ",
                          absl::FormatDuration(kDrainTime),
                          " and may be missing in the checkpoint");
  }
  return true;
}

void SaveRequests::Clear() {
  askers_.clear();
  // A save of the new epoch answers none that was raised before.
  answered_ = raised_;
  error_ = "the model was loaded anew";
}

bool SaveRequests::Advance(int64_t others_grants, absl::Time now) {
  if (!pauses_grants()) return false;
  if (now >= pause_until_) {
    askers_.clear();
    return true;
  }
  if (!HasDue() || (others_grants > 0 && now < drain_until_)) return false;
  raised_ = wanted_;
  step_was_under_way_ = others_grants > 0;
  return true;
}

absl::Time SaveRequests::NextDeadline() const {
  if (!pauses_grants()) return absl::InfiniteFuture();
  return HasDue() ? std::min(drain_until_, pause_until_) : pause_until_;
}

}  // namespace muster
