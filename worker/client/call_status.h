// The meanings of a failed call to a ps.
#ifndef WORKER_CLIENT_CALL_STATUS_H_
#define WORKER_CLIENT_CALL_STATUS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "common/rpc/protocol.h"

namespace muster {

// Marks the failure of a file, whose code is of the system's error (a folder
// that is gone is NotFound) and tells nothing of a peer.
inline absl::Status OfFile(absl::Status status) {
  if (!status.ok()) status.SetPayload("muster/of_file", absl::Cord());
  return status;
}

template <typename T>
absl::StatusOr<T> OfFile(absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return OfFile(std::move(result).status());
}

inline bool IsOfFile(const absl::Status& status) {
  return status.GetPayload("muster/of_file").has_value();
}

// The peer is gone, or too busy, for a while: try again.
inline bool IsTransient(const absl::Status& status) {
  if (IsOfFile(status)) return false;
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
  if (IsOfFile(status)) return false;
  return status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kNotFound;
}

// The answer of a ps to Hello, or of the coordinator: a newer start of this
// task has taken over.
inline bool IsReplaced(const absl::Status& status) {
  return absl::StartsWith(status.message(), kFencedPrefix);
}

}  // namespace muster

#endif  // WORKER_CLIENT_CALL_STATUS_H_
