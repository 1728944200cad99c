#ifndef PS_SERVER_SHARD_PUSH_BUDGET_H_
#define PS_SERVER_SHARD_PUSH_BUDGET_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// Admits received parts to a shard's queue by their bytes, so that workers that
// push faster than the shard applies cannot fill the machine. A refusal says
// when there will be room, from the rate at which the shard took parts so far.
// Thread-safe.
class PushBudget {
 public:
  // `max_bytes`: for parts that wait or are being applied; one part is always
  // admitted.
  explicit PushBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Errors: ResourceExhausted with RetryAfter. After OK, Release must follow.
  absl::Status Admit(int64_t bytes);
  // The part was taken in `busy`; zero if it was dropped unread.
  void Release(int64_t bytes, absl::Duration busy);

  int64_t waiting_bytes() const;
  // Refusals so far.
  int64_t refused() const;

 private:
  const int64_t max_bytes_;

  mutable absl::Mutex mu_;
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  // Moving average, seconds a byte. At first 1 GB/s, a slow machine's rate.
  double seconds_per_byte_ ABSL_GUARDED_BY(mu_) = 1e-9;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PUSH_BUDGET_H_
