#ifndef PS_SERVER_COORDINATOR_REQUEST_CHECKS_H_
#define PS_SERVER_COORDINATOR_REQUEST_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/coordination_service.pb.h"

namespace muster {

// The checks of requests to the coordinator for which one look at the request
// is enough. Errors: InvalidArgument.

// The workers of a manifest are tasks that train, each once, with counts in
// range; so are its evaluations.
absl::Status CheckRestored(const CommitEpochRequest& request);

// The counts of a report, and of evaluations, are in range; `batch_size` is 0
// if nobody knows it.
absl::Status CheckStepNumbers(const StepRequest& request, int64_t batch_size);

// Only the chief ends the job, or fails to save it.
absl::Status CheckMayStop(const StepRequest& request, const Sender& chief);
absl::Status CheckMayFinish(const FinishRequest& request, const Sender& chief);

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_REQUEST_CHECKS_H_
