#ifndef WORKER_SESSION_EVENT_QUEUE_H_
#define WORKER_SESSION_EVENT_QUEUE_H_

#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/session/session_messages.h"

namespace muster {

// Events on their way to the session's thread. Thread-safe.
class EventQueue {
 public:
  // `clock` outlives the queue.
  explicit EventQueue(const Clock* clock = SystemClock()) : clock_(clock) {}

  void Push(SessionEvent event);

  // The oldest event; waits for one up to `timeout`, then returns nothing.
  std::optional<SessionEvent> Pop(absl::Duration timeout);

  // The oldest WatchEvent or SignalEvent, before what came earlier; nothing if
  // there is none.
  std::optional<SessionEvent> PopUrgent();

 private:
  bool HasEvent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !events_.empty();
  }

  const Clock* const clock_;

  absl::Mutex mu_;
  std::deque<SessionEvent> events_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_SESSION_EVENT_QUEUE_H_
