#ifndef COMMON_PROCESS_EXIT_CODE_H_
#define COMMON_PROCESS_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// Exit codes of both binaries that are not a signal's (128 + n). 1 to 127 are
// permanent, 128 and above may be tried again: what Kubernetes job operators
// expect.
enum ExitCode {
  kExitDone = 0,
  // The training itself failed (a non-finite loss, a broken device).
  kExitFailed = 1,
  kExitBadConfig = 2,
  kExitBadCheckpoint = 3,
  kExitInsecure = 4,
  kExitRetryable = 138,
};

// The exit code of a process that could not start because of `status`.
// Unauthenticated is for a network that was not allowed; PermissionDenied is
// also a file's, which is a matter of configuration.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  return absl::IsUnauthenticated(status) ? kExitInsecure : kExitBadConfig;
}

// Why a task ends with kExitRetryable when its job does: JobState.unsaved.
inline std::string DescribeUnsavedEnd(absl::string_view chief = "its chief") {
  return absl::StrCat("the job has ended without its last save, as ", chief,
                      " did not come back: started again, it goes on from the "
                      "newest checkpoint");
}

}  // namespace muster

#endif  // COMMON_PROCESS_EXIT_CODE_H_
