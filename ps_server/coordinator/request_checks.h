#ifndef PS_SERVER_COORDINATOR_REQUEST_CHECKS_H_
#define PS_SERVER_COORDINATOR_REQUEST_CHECKS_H_

#include "absl/status/status.h"
#include "proto/coordination_service.pb.h"
#include "ps_server/coordinator/row_leases.h"

namespace muster {

// The checks of requests to the coordinator for which one look at the request
// is enough. Errors: InvalidArgument.

// The workers of a manifest are tasks that train, each once, with counts in
// range; so are its evaluations and its ledger.
absl::Status CheckRestored(const CommitEpochRequest& request);

// The counts of a report, of evaluations and of what is asked for are in range.
absl::Status CheckStepNumbers(const StepRequest& request);

// The rows of a report, if it names any, are those that were leased for the
// step; its examples are no more, but of a stream, whose length nobody knows.
absl::Status CheckLeasedRows(const StepRequest& report,
                             const RowLeases& leases);

// Only the chief ends the job, or fails to save it.
absl::Status CheckMayStop(const StepRequest& request, const Sender& chief);
absl::Status CheckMayFinish(const FinishRequest& request, const Sender& chief);

}  // namespace muster

#endif  // PS_SERVER_COORDINATOR_REQUEST_CHECKS_H_
