// What a failed call to a ps says about it.
#ifndef WORKER_CALL_STATUS_H_
#define WORKER_CALL_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/rpc/protocol.h"

namespace muster {

// The peer is gone, or too busy, for a while: try again.
inline bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kResourceExhausted:
      return true;
    default:
      return false;
  }
}

// The peer is alive but has moved on or forgotten us.
inline bool IsFenced(const absl::Status& status) {
  return status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kNotFound;
}

// The answer of a ps to Hello, or of the coordinator: a newer start of this
// task has taken over.
inline bool IsReplaced(const absl::Status& status) {
  return absl::StartsWith(status.message(), kFencedPrefix);
}

}  // namespace muster

#endif  // WORKER_CALL_STATUS_H_
