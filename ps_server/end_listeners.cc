#include "ps_server/end_listeners.h"

#include <algorithm>
#include <iterator>

namespace muster {

void EndListeners::OnEnd(int64_t version, absl::Time now) {
  end_version_ = version;
  end_ = now;
  Tick(now);
}

void EndListeners::OnWatch(int32_t ps_task, int64_t version, int64_t newest,
                           absl::Time now) {
  // A larger version is that of a former ps task 0.
  if (end_version_ > 0 && version >= end_version_ && version <= newest) {
    return Leave(ps_task);
  }
  if (last_heard_.size() < kMaxListeners) last_heard_[ps_task] = now;
}

void EndListeners::Tick(absl::Time now) {
  if (end_version_ == 0) return;
  for (auto it = last_heard_.begin(); it != last_heard_.end();) {
    const bool is_over = now >= std::min(it->second, end_) + patience_;
    it = is_over ? last_heard_.erase(it) : std::next(it);
  }
}

absl::Time EndListeners::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  if (end_version_ == 0) return deadline;
  for (const auto& [ps_task, heard] : last_heard_) {
    deadline = std::min(deadline, std::min(heard, end_) + patience_);
  }
  return deadline;
}

}  // namespace muster
