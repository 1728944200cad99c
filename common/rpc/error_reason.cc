#include "common/rpc/error_reason.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "proto/status.pb.h"

namespace muster {
namespace {

constexpr char kDomain[] = "muster";

struct NamedReason {
  ErrorReason reason;
  absl::string_view name;
};

constexpr NamedReason kReasons[] = {
    {ErrorReason::kFenced, "FENCED"},
    {ErrorReason::kReplaced, "REPLACED"},
    {ErrorReason::kNotRegistered, "NOT_REGISTERED"},
    {ErrorReason::kDamaged, "DAMAGED"},
    {ErrorReason::kCertificateEnded, "CERTIFICATE_ENDED"},
    {ErrorReason::kFile, "FILE"},
};

}  // namespace

absl::Status WithReason(absl::Status status, ErrorReason reason) {
  ErrorInfo info;
  info.set_domain(kDomain);
  for (const NamedReason& named : kReasons) {
    if (named.reason == reason) info.set_reason(std::string(named.name));
  }
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

std::optional<ErrorReason> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorInfoUrl);
  ErrorInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload)) ||
      info.domain() != kDomain) {
    return std::nullopt;
  }
  for (const NamedReason& named : kReasons) {
    if (named.name == info.reason()) return named.reason;
  }
  return std::nullopt;
}

absl::Status FencedError(absl::string_view message, ErrorReason reason) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("fenced: ", message)), reason);
}

bool IsTransient(const absl::Status& status) {
  if (ReasonOf(status) == ErrorReason::kFile) return false;
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

}  // namespace muster
