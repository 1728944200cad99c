#include "ps_server/coordinator/job_of_namespace.h"

#include "absl/strings/str_cat.h"
#include "common/config/namespace_name.h"
#include "common/rpc/error_reason.h"

namespace muster {

CoordinatorOptions OptionsOfJob(const CoordinatorOptions& options,
                                absl::string_view space) {
  CoordinatorOptions job = options;
  if (space.empty()) return job;
  job.cluster.Clear();
  job.expected_tasks = 0;
  job.guards_tasks = true;
  return job;
}

absl::Status NoJobHere(absl::string_view what, absl::string_view space) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          what, ": ", QuotedNamespace(space), " has no job here; register")),
      ErrorReason::kNotRegistered);
}

}  // namespace muster
