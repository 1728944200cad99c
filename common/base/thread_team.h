#ifndef COMMON_BASE_THREAD_TEAM_H_
#define COMMON_BASE_THREAD_TEAM_H_

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Threads that share the work of one caller. Thread-compatible: one Run at a
// time.
class ThreadTeam {
 public:
  // The caller is one of the `threads`. REQUIRES: threads >= 1.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();

  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls body(i) once for each i of [0, count), on whichever thread is free,
  // and returns when all have returned. What they wrote is visible then.
  void Run(int count, absl::FunctionRef<void(int)> body);

 private:
  using Body = absl::FunctionRef<void(int)>;

  void ServeCaller();
  // Carries out what is left to begin.
  void Work();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return next_ < count_;
  }
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || HasWork();
  }
  bool IsDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return unfinished_ == 0;
  }

  absl::Mutex mu_;
  // Of the Run under way.
  const Body* body_ ABSL_GUARDED_BY(mu_) = nullptr;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
  int next_ ABSL_GUARDED_BY(mu_) = 0;
  int unfinished_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;

  std::vector<std::thread> threads_;
};

}  // namespace muster

#endif  // COMMON_BASE_THREAD_TEAM_H_
