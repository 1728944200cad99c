#include "worker/session/event_queue.h"

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

}  // namespace muster
