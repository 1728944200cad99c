#ifndef COMMON_RPC_ERROR_REASON_H_
#define COMMON_RPC_ERROR_REASON_H_

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// The reason of an error beside its code, for programs to read; the message is
// for people. It goes along with the error over every link, as a
// google.rpc.ErrorInfo of the domain "muster" (proto/status.proto).
enum class ErrorReason {
  // The request means an earlier start or model epoch of the ps, or comes
  // before Hello: its sender begins anew. "FENCED"
  kFenced,
  // A newer start of the sender's task has taken over. "REPLACED"
  kReplaced,
  // The coordinator does not know the sender, which registers.
  // "NOT_REGISTERED"
  kNotRegistered,
  // What came is no message: without keys nobody notices on the way that bytes
  // were changed. "DAMAGED"
  kDamaged,
  // The certificate that the sender showed when it connected has ended: it
  // connects anew, with a renewed one. "CERTIFICATE_ENDED"
  kCertificateEnded,
  // A file failed: the code is of the system's error (a folder that is gone is
  // NotFound) and tells nothing of a peer. "FILE"
  kFile,
};

// `status` with that reason; an OK status stays as it is.
absl::Status WithReason(absl::Status status, ErrorReason reason);

// Nothing if the error has none that is known here.
std::optional<ErrorReason> ReasonOf(const absl::Status& status);

// FailedPrecondition, "fenced: " and `message`. The reason is kFenced or
// kReplaced.
absl::Status FencedError(absl::string_view message,
                         ErrorReason reason = ErrorReason::kFenced);

// The peer is gone, or too busy, for a while: the same may succeed later.
bool IsTransient(const absl::Status& status);

// `status` of a message whose bytes are none, or of an answer.
inline absl::Status Damaged(absl::Status status) {
  return WithReason(std::move(status), ErrorReason::kDamaged);
}
inline bool IsDamaged(const absl::Status& status) {
  return ReasonOf(status) == ErrorReason::kDamaged;
}

// So many times a request is sent until it is not the way that is to blame: it
// was damaged, or its answer. It has the same identity each time.
inline constexpr int kDamageTries = 3;

// The key of the reason among a status' payloads.
inline constexpr char kErrorInfoUrl[] =
    "type.googleapis.com/google.rpc.ErrorInfo";

}  // namespace muster

#endif  // COMMON_RPC_ERROR_REASON_H_
