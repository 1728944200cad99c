#include "ps_server/coordinator/end_listeners.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/cluster/task_id.h"
#include "ps_server/caller/task_name.h"

namespace muster {

void EndListeners::OnEnd(int64_t version, absl::Time now) {
  end_version_ = version;
  end_ = now;
  Tick(now);
}

void EndListeners::Expect(const TaskKey& task, uint64_t incarnation,
                          absl::Time now) {
  if (listeners_.size() < kMaxListeners) listeners_[task] = {incarnation, now};
}

void EndListeners::OnWatch(const Sender& ps, int64_t version, int64_t newest,
                           absl::Time now) {
  // A larger version is that of a former ps task 0.
  if (end_version_ > 0 && version >= end_version_ && version <= newest) {
    listeners_.erase(KeyOf(ps));
    return;
  }
  Expect(KeyOf(ps), ps.incarnation(), now);
}

void EndListeners::OnTold(uint64_t incarnation) {
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    const bool is_told =
        it->first.first == kWorkerJob && it->second.incarnation == incarnation;
    it = is_told ? listeners_.erase(it) : std::next(it);
  }
}

// The farewell of an earlier start may come late.
void EndListeners::Leave(const Sender& ps) {
  const auto listener = listeners_.find(KeyOf(ps));
  if (listener == listeners_.end() ||
      listener->second.incarnation != ps.incarnation()) {
    return;
  }
  listeners_.erase(listener);
}

void EndListeners::Tick(absl::Time now) {
  if (end_version_ == 0) return;
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    const bool is_over =
        now >= std::min(it->second.last_heard, end_) + patience_;
    it = is_over ? listeners_.erase(it) : std::next(it);
  }
}

std::string EndListeners::Describe() const {
  if (end_version_ == 0 || listeners_.empty()) return "";
  std::string text = TaskName(listeners_.begin()->first);
  if (listeners_.size() > 1) {
    absl::StrAppend(&text, " and ", listeners_.size() - 1, " more tasks");
  }
  return absl::StrCat(text, " to hear of the end");
}

absl::Time EndListeners::NextDeadline() const {
  absl::Time deadline = absl::InfiniteFuture();
  if (end_version_ == 0) return deadline;
  for (const auto& [task, listener] : listeners_) {
    deadline =
        std::min(deadline, std::min(listener.last_heard, end_) + patience_);
  }
  return deadline;
}

}  // namespace muster
