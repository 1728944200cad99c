#ifndef COMMON_RPC_RETRY_AFTER_H_
#define COMMON_RPC_RETRY_AFTER_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

// A server's hint in an error, after what pause the request may be sent again.
// It goes along over every link, as a google.rpc.RetryInfo
// (proto/status.proto).

// REQUIRES: !status->ok().
void SetRetryAfter(absl::Duration pause, absl::Status* status);

// Not below 0 and at most a minute, whatever a peer claims; nothing if the
// error has no hint.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// The key of the hint among a status' payloads.
inline constexpr char kRetryInfoUrl[] =
    "type.googleapis.com/google.rpc.RetryInfo";

}  // namespace muster

#endif  // COMMON_RPC_RETRY_AFTER_H_
