#ifndef PS_SERVER_SERVICE_STRAND_H_
#define PS_SERVER_SERVICE_STRAND_H_

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Runs what is posted, one after another in the order of posting, with no
// thread of its own: who posts while nobody runs anything runs his task, and
// those that others post meanwhile, before Post returns. A state machine so
// costs its callers no change of threads, which takes longer than most of what
// it does. What a task did is visible to the next one. Thread-safe.
//
// Others may post without end, and Post does not return until there is nothing
// left: a thread with other duties, such as to read what comes next, sees to
// them with an Attendance.
class Strand {
 public:
  using Task = std::function<void()>;

  // While it lives, its thread calls `attend` after each task of the strand
  // that it runs, with no lock held. That may post. One a thread.
  class Attendance {
   public:
    // Both outlive this.
    Attendance(const Strand* strand, const std::function<void()>* attend);
    ~Attendance();

    Attendance(const Attendance&) = delete;
    Attendance& operator=(const Attendance&) = delete;

   private:
    friend class Strand;

    const Strand* const strand_;
    const std::function<void()>& attend_;
  };

  Strand() = default;
  // Closes.
  ~Strand() { Close(); }

  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  // Tasks run with no lock held and must not block. A task may post. Returns
  // false, and drops `task`, once closed.
  [[nodiscard]] bool Post(Task task);

  // Takes no more tasks, and returns when those that were posted have run.
  // Repeatable. REQUIRES: not called from a task.
  void Close();

 private:
  // Runs what there is. REQUIRES: this thread has set running_.
  void Run();
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !running_; }

  absl::Mutex mu_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  // Some thread is in Run; it leaves when there are no tasks.
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_STRAND_H_
