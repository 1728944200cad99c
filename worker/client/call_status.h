// The meanings of a failed call to a ps.
#ifndef WORKER_CLIENT_CALL_STATUS_H_
#define WORKER_CLIENT_CALL_STATUS_H_

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/error_reason.h"

namespace muster {

// Marks the failure of a file.
inline absl::Status OfFile(absl::Status status) {
  return WithReason(std::move(status), ErrorReason::kFile);
}

template <typename T>
absl::StatusOr<T> OfFile(absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return OfFile(std::move(result).status());
}

inline bool IsOfFile(const absl::Status& status) {
  return ReasonOf(status) == ErrorReason::kFile;
}

// The train_dir is another process's now: nothing more may be written there.
inline bool IsTaken(const absl::Status& status) {
  return IsOfFile(status) && status.code() == absl::StatusCode::kAlreadyExists;
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
  return ReasonOf(status) == ErrorReason::kReplaced;
}

// A fence, FailedPrecondition, as Aborted: the step is to be begun anew. Other
// errors as they are.
inline absl::Status AbortedIfFenced(const absl::Status& status) {
  const std::optional<ErrorReason> reason = ReasonOf(status);
  if (reason != ErrorReason::kFenced && reason != ErrorReason::kReplaced) {
    return status;
  }
  return WithReason(absl::AbortedError(status.message()), *reason);
}

}  // namespace muster

#endif  // WORKER_CLIENT_CALL_STATUS_H_
