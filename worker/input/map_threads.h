#ifndef WORKER_INPUT_MAP_THREADS_H_
#define WORKER_INPUT_MAP_THREADS_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/thread_team.h"

namespace muster {

// Threads that prepare rows at the same time, each into a place of its own, so
// that their order is that of the places. One caller at a time; Stop is for any
// thread.
//
//   RETURN_IF_ERROR(threads.ForEachRow(batch.rows, [&](int64_t i) {
//     return data_set.Read(indices[i], rows.Row(i));
//   }));
class MapThreads {
 public:
  // The caller is one of them. REQUIRES: threads >= 1.
  explicit MapThreads(int threads) : team_(threads) {}

  int threads() const { return team_.threads(); }

  // Calls prepare(i) for each i of [0, rows), and returns when all have
  // returned; allocates nothing. Errors: that of the smallest i, whatever the
  // number of threads, and rows after it may be left out; Cancelled after Stop,
  // with any rows left out.
  absl::Status ForEachRow(int64_t rows,
                          absl::FunctionRef<absl::Status(int64_t)> prepare);

  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // No further row is begun, now or ever.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

 private:
  void Prepare(int64_t begin, int64_t end,
               absl::FunctionRef<absl::Status(int64_t)> prepare);
  void Fail(int64_t row, absl::Status error);

  ThreadTeam team_;
  std::atomic<bool> stopped_{false};
  // No later row need be prepared. Written under mu_.
  std::atomic<int64_t> first_bad_{INT64_MAX};

  absl::Mutex mu_;
  // That of first_bad_.
  absl::Status error_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster

#endif  // WORKER_INPUT_MAP_THREADS_H_
