#ifndef PS_SERVER_SERVICE_STRAND_H_
#define PS_SERVER_SERVICE_STRAND_H_

#include <deque>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// Runs what is posted, one after another in the order of posting: the turns of
// a state machine that has no thread. What a task did is visible to the next
// one. Thread-safe.
//
// Without a thread of its own, who posts while nobody runs anything runs his
// task, and those that others post meanwhile, before Post returns. A state
// machine so costs its callers no change of threads, which takes longer than
// most of what it does. But others may post without end, and Post does not
// return until there is nothing left: a thread with other duties, such as to
// read what comes next, sees to them with a YieldHook.
//
// With a thread of its own the strand also lets the state machine's time pass.
// It waits and starts its thread through a Clock, so that tests/simulation has
// it in virtual time.
class Strand {
 public:
  using Task = std::function<void()>;
  // Called after the tasks that were there together and when its last answer
  // has passed; returns how long it may be left uncalled. Infinite is a good
  // answer.
  using Idle = std::function<absl::Duration()>;

  // While it lives, its thread calls `hook` after each task of the strand that
  // it runs, with no lock held. That may post. One a thread.
  class YieldHook {
   public:
    // Both outlive this.
    YieldHook(const Strand* strand, const std::function<void()>* hook);
    ~YieldHook();

    YieldHook(const YieldHook&) = delete;
    YieldHook& operator=(const YieldHook&) = delete;

   private:
    friend class Strand;

    const Strand* const strand_;
    const std::function<void()>& hook_;
  };

  // On the threads of those who post. `clock` outlives the strand.
  explicit Strand(const Clock* clock);
  // On a thread of its own, as `idle` is.
  Strand(const Clock* clock, Idle idle);
  // Closes.
  ~Strand();

  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // Tasks run with no lock held and must not block. A task may post. Returns
  // false, and drops `task`, once closed.
  [[nodiscard]] bool Post(Task task);

  // Takes no more tasks, and returns when those that were posted have run.
  // Repeatable. REQUIRES: not called from a task.
  void Close();

 private:
  // Runs the next task; false if there is none, and this thread has left.
  // REQUIRES: this thread has set running_.
  bool RunNext();
  // The strand's own thread.
  void RunUntilClosed();
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !running_; }
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || !tasks_.empty();
  }

  const Clock* const clock_;
  const Idle idle_;

  absl::Mutex mu_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  // Some thread runs tasks; a poster's leaves when there are none, the own one
  // when the strand is closed, too.
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;

  // Last: uses all of the above.
  std::unique_ptr<ClockThread> thread_;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_STRAND_H_
