#ifndef WORKER_CLIENT_FAILING_TIME_H_
#define WORKER_CLIENT_FAILING_TIME_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// Notes in the error of a transfer for how long its shard had failed by then,
// so that who waits for the shard next counts from the loss.
void SetFailingTime(absl::Duration time, absl::Status* status);

// Zero if nothing was noted.
absl::Duration FailingTime(const absl::Status& status);

}  // namespace muster

#endif  // WORKER_CLIENT_FAILING_TIME_H_
