#include "common/process/process_setup.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "absl/synchronization/mutex.h"
#include "common/process/stop_signals.h"

namespace muster {

namespace {

constexpr size_t kStackBytes = 2 << 20;

// Where address space is limited (ulimit -v), threads take little of it: each
// would reserve 8 MiB for its stack and up to 128 MiB for a heap of its own,
// and gRPC aborts, or waits for ever, where there is no room for one.
void ReserveLess() {
  rlimit space = {};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) {
    return;
  }
  mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace

void KeepFreedMemory() {
  // Both: setting one freezes the other at 128 KB.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void LockWithoutChecks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

void SetUpProcess() {
  KeepFreedMemory();
  LockWithoutChecks();
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  StopSignals::EndByNotices();
  ReserveLess();
  rlimit descriptors = {};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
}

}  // namespace muster
