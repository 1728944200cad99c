#ifndef WORKER_SESSION_STATE_WATCH_H_
#define WORKER_SESSION_STATE_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/link.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// A watch on the job's state: each answer starts the next call by itself, on
// the link's thread, so that this worker's heartbeat goes on while its own
// thread computes. The first error ends it; Start begins anew. Thread-safe.
class StateWatch {
 public:
  using OnState = std::function<void(absl::StatusOr<JobState>)>;

  // `link` and `clock` outlive this; `on_state` is called on any thread.
  StateWatch(Link* link, const Clock* clock, const Sender& sender,
             OnState on_state);
  // No call is begun from here on; a last one may still be answered (and is
  // dropped).
  ~StateWatch();

  // Watches for states that differ from this version. REQUIRES: not started,
  // or ended by an error.
  void Start(int64_t state_version);

 private:
  // Shared by this and the callbacks under way.
  struct Shared;
  static void Issue(const std::shared_ptr<Shared>& shared,
                    int64_t state_version);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace muster

#endif  // WORKER_SESSION_STATE_WATCH_H_
