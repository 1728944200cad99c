#include "worker/verb/worker_verb.h"

#include "common/process/exit_code.h"
#include "common/rpc/server/task_flags.h"
#include "worker/client/call_status.h"

namespace muster {

int FailVerb(const absl::Status& status) {
  const int exit_code = LogFailure(status);
  // There may be room again.
  if (IsOfFile(status) && absl::IsResourceExhausted(status)) {
    return kExitRetryable;
  }
  // A file of the run is not as it was written.
  if (IsOfFile(status) && absl::IsDataLoss(status)) return kExitBadCheckpoint;
  return exit_code;
}

}  // namespace muster
