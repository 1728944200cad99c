#ifndef COMMON_BASE_STOPPED_ERROR_H_
#define COMMON_BASE_STOPPED_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

// Marks a status of this process; no link carries it.
inline constexpr char kStoppedUrl[] = "muster.stopped";

// Cancelled, "WHAT: stopped": this process was asked to end, and has given up
// what it was doing. Told from a peer's Cancelled by IsStopped.
inline absl::Status StoppedError(absl::string_view what) {
  absl::Status status = absl::CancelledError(absl::StrCat(what, ": stopped"));
  status.SetPayload(kStoppedUrl, absl::Cord());
  return status;
}

inline bool IsStopped(const absl::Status& status) {
  return status.GetPayload(kStoppedUrl).has_value();
}

}  // namespace muster

#endif  // COMMON_BASE_STOPPED_ERROR_H_
