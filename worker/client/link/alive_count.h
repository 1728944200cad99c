#ifndef WORKER_CLIENT_LINK_ALIVE_COUNT_H_
#define WORKER_CLIENT_LINK_ALIVE_COUNT_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Counts the calls of which gRPC still holds something, so that their owner can
// wait until none holds its channel. Were the last reference to the last
// channel dropped on a thread of gRPC's, that thread would join itself and free
// its queue under its own feet (gRPC 1.51, CallbackAlternativeCQ): the process
// aborts. Thread-safe.
class AliveCount {
 public:
  // Lives as long as a call. The first member of what has the ClientContext, so
  // that it outlives that, which holds the channel.
  class Mark {
   public:
    explicit Mark(AliveCount* count) : count_(count) {
      absl::MutexLock lock(&count_->mu_);
      ++count_->alive_;
    }
    ~Mark() {
      absl::MutexLock lock(&count_->mu_);
      --count_->alive_;
    }

    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    AliveCount* const count_;
  };

  AliveCount() = default;
  AliveCount(const AliveCount&) = delete;
  AliveCount& operator=(const AliveCount&) = delete;

  // Returns when there is no mark.
  void AwaitNone() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* alive) { return *alive == 0; }, &alive_));
  }

 private:
  absl::Mutex mu_;
  int alive_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster

#endif  // WORKER_CLIENT_LINK_ALIVE_COUNT_H_
