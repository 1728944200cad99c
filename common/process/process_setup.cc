#include "common/process/process_setup.h"

#include <signal.h>
#include <sys/resource.h>

#include "common/process/freed_memory.h"
#include "common/process/stop_signals.h"

namespace muster {

void SetUpProcess() {
  KeepFreedMemory();
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  StopSignals::EndByNotices();
  rlimit descriptors = {};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
}

}  // namespace muster
