#ifndef COMMON_BASE_THREAD_TEAM_H_
#define COMMON_BASE_THREAD_TEAM_H_

#include <atomic>
#include <cstdint>
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
  // How a thread waits for work, and the caller for the others. One that spins
  // first sleeps when SpinUntil gives up: for Runs that follow each other
  // sooner than a thread wakes.
  enum class Wait { kAsleep, kSpinningFirst };

  // The caller is one of the `threads`. REQUIRES: threads >= 1.
  explicit ThreadTeam(int threads, Wait wait = Wait::kAsleep);
  ~ThreadTeam();

  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int threads() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls body(i) once for each i of [0, count), on whichever thread is free,
  // and returns when all have returned. What they wrote is visible then. Calls
  // that wait for each other all begin if there are threads enough; if there
  // are not, or the others get no core, one thread makes several calls.
  void Run(int count, absl::FunctionRef<void(int)> body);

 private:
  using Body = absl::FunctionRef<void(int)>;

  void ServeCaller();
  // Carries out what is left to begin.
  void Work();
  bool HasWork() const { return unbegun_.load(std::memory_order_acquire) > 0; }
  bool IsDone() const {
    return unfinished_.load(std::memory_order_acquire) == 0;
  }

  const bool spins_;
  absl::Mutex mu_;
  // The Run under way. Of its calls the last `unbegun_` have not begun, and
  // `unfinished_` have not returned: written under mu_, and read without it by
  // threads that spin.
  const Body* body_ ABSL_GUARDED_BY(mu_) = nullptr;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int> unbegun_{0};
  std::atomic<int> unfinished_{0};
  // Runs that have begun.
  int64_t runs_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;

  std::vector<std::thread> threads_;
};

}  // namespace muster

#endif  // COMMON_BASE_THREAD_TEAM_H_
