#ifndef PS_SERVER_COORDINATOR_JOB_OF_NAMESPACE_H_
#define PS_SERVER_COORDINATOR_JOB_OF_NAMESPACE_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/coordinator.h"

namespace muster {

// Whether a request of this type may be the first that ps task 0 hears of a
// namespace's job. All others are of members.
template <typename Request>
inline constexpr bool kBringsJob = std::is_same_v<Request, RegisterRequest> ||
                                   std::is_same_v<Request, AssignTaskRequest>;

// The settings of a namespace's job, where those of the default one are
// `options`: a named one lists no tasks, its are those that come.
CoordinatorOptions OptionsOfJob(const CoordinatorOptions& options,
                                absl::string_view space);

// The answer to `what` of who is no member, since there is no job:
// FailedPrecondition (NOT_REGISTERED).
absl::Status NoJobHere(absl::string_view what, absl::string_view space);

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_JOB_OF_NAMESPACE_H_
