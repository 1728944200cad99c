#include "worker/verb/worker_verb.h"

#include "common/process/exit_code.h"
#include "common/rpc/server/task_flags.h"
#include "worker/client/call_status.h"

namespace muster {

int FailVerb(const absl::Status& status) {
  const int exit_code = LogFailure(status);
  // There may be room again.
  const bool is_full = IsOfFile(status) && absl::IsResourceExhausted(status);
  return is_full ? int{kExitRetryable} : exit_code;
}

}  // namespace muster
