#ifndef PS_SERVER_SERVICE_MAILBOX_H_
#define PS_SERVER_SERVICE_MAILBOX_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// Runs what is posted, one after another in the order of posting, on one
// thread of its own: the thread of a state machine that has none. Posted
// functions run with no lock held and must not block. Thread-safe.
class Mailbox {
 public:
  using Task = std::function<void()>;
  // Called after every batch of tasks and when its last answer has passed;
  // returns how long it may be left uncalled. Infinite is a good answer.
  using Idle = std::function<absl::Duration()>;

  explicit Mailbox(Idle idle = nullptr);
  // Closes.
  ~Mailbox();

  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Returns false, and drops `task`, once closed.
  [[nodiscard]] bool Post(Task task);

  // Takes no more tasks, runs those that were posted, ends the thread.
  // REQUIRES: not called from a task.
  void Close();

 private:
  void Run();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || !tasks_.empty();
  }

  const Idle idle_;

  absl::Mutex mu_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;

  absl::Mutex join_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  std::thread thread_ ABSL_GUARDED_BY(join_mu_);
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_MAILBOX_H_
