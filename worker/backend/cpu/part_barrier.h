#ifndef WORKER_BACKEND_CPU_PART_BARRIER_H_
#define WORKER_BACKEND_CPU_PART_BARRIER_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Where the parts of a job wait for each other, any number of times.
// Thread-safe.
class PartBarrier {
 public:
  // REQUIRES: parts >= 1.
  explicit PartBarrier(int parts) : parts_(parts) {}

  PartBarrier(const PartBarrier&) = delete;
  PartBarrier& operator=(const PartBarrier&) = delete;

  // Returns when every part has called it as often as the caller. Spins at
  // first (SpinUntil), then sleeps.
  void Await();

 private:
  const int parts_;
  absl::Mutex mu_;
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
  // How often all have arrived: written under mu_, and read without it by
  // threads that spin.
  std::atomic<int64_t> passed_{0};
};

}  // namespace muster

#endif  // WORKER_BACKEND_CPU_PART_BARRIER_H_
