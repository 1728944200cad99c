#ifndef PS_SERVER_SHARD_PUSH_BUDGET_H_
#define PS_SERVER_SHARD_PUSH_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace muster {

// Admits received parts to a shard's queue by their bytes, so that workers that
// push faster than the shard applies cannot fill the machine. Namespaces that
// have parts here, or were refused one since, have equal shares of the room:
// who floods leaves some for the others as soon as the next part was taken. A
// refusal says when there will be room, from the rate at which the shard took
// parts so far. Thread-safe.
class PushBudget {
 public:
  // `max_bytes`: for parts that wait or are being applied; one part is always
  // admitted.
  explicit PushBudget(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Errors: ResourceExhausted with RetryAfter. After OK, Release must follow.
  absl::Status Admit(int64_t bytes, absl::string_view space = "");
  // The part was taken in `busy`; zero if it was dropped unread.
  void Release(int64_t bytes, absl::Duration busy,
               absl::string_view space = "");

  int64_t waiting_bytes() const;
  // Refusals so far.
  int64_t refused() const;

 private:
  // A namespace's part of the room.
  struct Share {
    int64_t waiting_bytes = 0;
    // It was refused since it last had room.
    bool wants_room = false;

    bool is_there() const { return waiting_bytes > 0 || wants_room; }
  };
  // Senders choose names: more are one.
  static constexpr size_t kMaxShares = 256;

  Share& ShareOf(absl::string_view space) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What one of those that are there may have.
  int64_t FairBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasRoom(int64_t bytes, const Share& share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t max_bytes_;

  mutable absl::Mutex mu_;
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The default namespace's share, and those of named ones.
  Share default_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Share, std::less<>> named_ ABSL_GUARDED_BY(mu_);
  int64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  // Moving average, seconds a byte. At first 1 GB/s, a slow machine's rate.
  double seconds_per_byte_ ABSL_GUARDED_BY(mu_) = 1e-9;
};

}  // namespace muster

#endif  // PS_SERVER_SHARD_PUSH_BUDGET_H_
