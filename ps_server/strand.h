#ifndef PS_SERVER_STRAND_H_
#define PS_SERVER_STRAND_H_

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace muster {

// Runs what is posted, one after another in the order of posting, with no
// thread of its own: who posts while nobody runs anything runs his task, and
// those that others post meanwhile, before Post returns. A state machine so
// costs its callers no change of threads, which takes longer than most of what
// it does. What a task did is visible to the next one. Thread-safe.
//
// Who has run others' tasks for kTurn leaves the rest to the next one to post,
// so that his own are not kept waiting for ever by those who never stop.
class Strand {
 public:
  using Task = std::function<void()>;
  static constexpr absl::Duration kTurn = absl::Milliseconds(2);

  // `clock`, of turns, outlives the strand.
  explicit Strand(const Clock* clock) : clock_(*clock) {}
  // Closes.
  ~Strand() { Close(); }

  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // Tasks run with no lock held and must not block. A task may post. Who takes
  // over waits for the task that runs. Returns false, and drops `task`, once
  // closed.
  [[nodiscard]] bool Post(Task task);

  // Takes no more tasks, and returns when those that were posted have run.
  // Repeatable. REQUIRES: not called from a task.
  void Close();

 private:
  // What becomes of running when a turn is over.
  enum class Successor {
    kNone,     // the turn is not over
    kWanted,   // the next one to post
    kWaiting,  // for the task that runs
    kGo,       // the one before has left
  };

  // Appends a task; whether this thread is to run what there is.
  bool Append(Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs what there is, or a turn of it. REQUIRES: this thread is the runner.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // The next task of a turn that has begun then; null if the turn is over.
  Task Next(absl::Time begun) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !running_; }
  bool MayGo() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return successor_ == Successor::kGo;
  }

  const Clock& clock_;

  absl::Mutex mu_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  // Some thread is in Run, or is about to be.
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  // That one.
  std::thread::id runner_ ABSL_GUARDED_BY(mu_);
  Successor successor_ ABSL_GUARDED_BY(mu_) = Successor::kNone;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // PS_SERVER_STRAND_H_
