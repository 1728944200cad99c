#include "worker/session/event_queue.h"

#include <algorithm>
#include <utility>

namespace muster {

void EventQueue::Push(SessionEvent event) {
  absl::MutexLock lock(&mu_);
  events_.push_back(std::move(event));
}

std::optional<SessionEvent> EventQueue::Pop(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  clock_->Await(&mu_, absl::Condition(this, &EventQueue::HasEvent), timeout);
  if (events_.empty()) return std::nullopt;
  SessionEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::optional<SessionEvent> EventQueue::PopUrgent() {
  absl::MutexLock lock(&mu_);
  const auto urgent =
      std::find_if(events_.begin(), events_.end(), [](const auto& event) {
        return std::holds_alternative<WatchEvent>(event) ||
               std::holds_alternative<SignalEvent>(event);
      });
  if (urgent == events_.end()) return std::nullopt;
  SessionEvent event = std::move(*urgent);
  events_.erase(urgent);
  return event;
}

}  // namespace muster
