#ifndef PS_SERVER_COORDINATOR_COORDINATOR_OPTIONS_H_
#define PS_SERVER_COORDINATOR_COORDINATOR_OPTIONS_H_

#include <cstddef>

#include "absl/time/time.h"
#include "proto/cluster.pb.h"

namespace muster {

struct CoordinatorOptions {
  // A worker that was not heard of for so long is lost: its grant returns, and
  // nobody waits for it. Its next message brings it back. The same goes for a
  // ps task that is to be told that the job is done.
  absl::Duration worker_timeout = absl::Seconds(30);
  // The longest that a Watch or Step waits, whatever it asks for.
  absl::Duration max_watch = absl::Seconds(30);
  // How long the end of a job waits for a chief that is lost, and has the last
  // save still to make; then the job ends without it (JobState.unsaved).
  absl::Duration max_wait = absl::Hours(2);
  // The ps tasks end if nobody trains on them for max_wait
  // (JobState.abandoned).
  bool ends_without_workers = false;
  // Tasks that train, by the ClusterSpec. While fewer have come, a job whose
  // tasks have all finished waits so long for the others before it is DONE: a
  // worker that comes late to a short job is told that all is done instead of
  // waiting for a ps that has left.
  int expected_tasks = 0;
  absl::Duration latecomer_wait = absl::Milliseconds(2500);
  // The cluster as this ps knows it; empty for --standalone.
  ClusterDef cluster;
  // How many tasks may register beside those of the cluster: as many as a
  // cluster can have, since it need not list the workers.
  size_t max_unlisted_tasks = 4096;
  // The ps tasks keep serving: a job that is DONE may go on
  // (RegisterRequest.goes_on).
  bool may_go_on = false;
  // Nobody replaces a task that is there and alive: two jobs may have been
  // given one namespace.
  bool guards_tasks = false;
};

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_COORDINATOR_OPTIONS_H_
