#include "worker/backend/device_mean.h"

#include <algorithm>
#include <cassert>

namespace muster {

absl::Status DeviceMean::Join(int member, const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  assert(!came_[member]);
  came_[member] = true;
  all_go_on_ &= status.ok();
  const int64_t round = round_;
  if (++num_came_ == came_.size()) {
    last_goes_on_ = all_go_on_;
    all_go_on_ = true;
    num_came_ = 0;
    std::fill(came_.begin(), came_.end(), false);
    ++round_;
  } else {
    const auto is_over = [this, round]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return IsOver(round);
    };
    mu_.Await(absl::Condition(&is_over));
  }
  if (!status.ok()) return status;
  if (last_goes_on_ && !aborted_) return absl::OkStatus();
  return absl::CancelledError("another tower of this step has failed");
}

void DeviceMean::Abort() {
  absl::MutexLock lock(&mu_);
  aborted_ = true;
}

bool DeviceMean::is_aborted() const {
  absl::MutexLock lock(&mu_);
  return aborted_;
}

}  // namespace muster
