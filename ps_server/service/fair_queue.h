#ifndef PS_SERVER_SERVICE_FAIR_QUEUE_H_
#define PS_SERVER_SERVICE_FAIR_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// The requests that wait for one shard, by namespace: those of one in the order
// in which they came, and of several the next one is that of the namespace
// which has had the fewest bytes carried out. One that comes after it had
// nothing to do begins where the others are, so that it neither makes up for
// its pause nor waits for theirs (start-time fair queueing: Goyal, Vin and
// Cheng, 1996). Thread-safe.
class FairQueue {
 public:
  using Task = std::function<void()>;

  // Returns the task's number. `bytes` is what carrying it out costs; small
  // ones count as kLeastBytes.
  uint64_t Push(absl::string_view space, int64_t bytes, Task task);
  // Takes it out, if it was not popped yet; whether it was there.
  bool Remove(absl::string_view space, uint64_t number);
  // The next task; null if there is none.
  Task Pop();

  // A request that moves no tensors takes about as long as such a part.
  static constexpr int64_t kLeastBytes = 4096;

 private:
  struct Entry {
    uint64_t number;
    int64_t bytes;
    Task task;
  };
  struct Lane {
    std::deque<Entry> waiting;
    // The bytes carried out, counted on from where it began.
    int64_t served = 0;
  };

  // Forgets lanes that are as good as new: names are the senders' to choose.
  void Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  std::map<std::string, Lane, std::less<>> lanes_ ABSL_GUARDED_BY(mu_);
  // Where the namespace was that had the last turn.
  int64_t now_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace muster

#endif  // PS_SERVER_SERVICE_FAIR_QUEUE_H_
