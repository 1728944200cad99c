#ifndef COMMON_RPC_RETRY_AFTER_H_
#define COMMON_RPC_RETRY_AFTER_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// A server's hint in an error, with what pause the request may be sent again.
// It goes over gRPC (status_conversion.h).

// REQUIRES: !status->ok().
void SetRetryAfter(absl::Duration pause, absl::Status* status);

// Not below 0 and at most a minute, whatever a peer claims; nothing if the
// error has no hint.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

}  // namespace muster

#endif  // COMMON_RPC_RETRY_AFTER_H_
