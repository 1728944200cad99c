#include "common/rpc/status_conversion.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/rpc/retry_after.h"

namespace muster {
namespace {

static_assert(static_cast<int>(absl::StatusCode::kNotFound) ==
              static_cast<int>(grpc::StatusCode::NOT_FOUND));
static_assert(static_cast<int>(absl::StatusCode::kAborted) ==
              static_cast<int>(grpc::StatusCode::ABORTED));
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
              static_cast<int>(grpc::StatusCode::UNAUTHENTICATED));

// Metadata may take 8 KiB (server_settings.cc), and percent-encoding may
// triple a message. Over the limit the peer would see another error.
constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kMaxStatusBytes = 8192;

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

std::string CutMessage(const absl::Status& status) {
  std::string message(status.message().substr(0, kMaxMessageBytes));
  if (status.message().size() > kMaxMessageBytes) message += "...";
  return message;
}

// With the hint in the peer's details, if they have one.
absl::Status WithRetryAfter(const StatusDetails& details, absl::Status status) {
  for (const google::protobuf::Any& any : details.details()) {
    RetryInfo retry;
    if (any.type_url() != kRetryInfoUrl ||
        !retry.ParseFromString(any.value())) {
      continue;
    }
    SetRetryAfter(absl::Seconds(retry.retry_delay().seconds()) +
                      absl::Nanoseconds(retry.retry_delay().nanos()),
                  &status);
    break;
  }
  return status;
}

}  // namespace

absl::Status ToAbslStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  const std::string bytes = status.error_details();
  StatusDetails details;
  if (bytes.empty() || !details.ParseFromString(bytes)) return result;
  return WithRetryAfter(details, std::move(result));
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const StatusDetails details = StatusToDetails(status);
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.code()), details.message(),
      details.details().empty() ? "" : details.SerializeAsString());
}

StatusDetails StatusToDetails(const absl::Status& status) {
  StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(CutMessage(status));
  const auto retry_after = RetryAfter(status);
  if (!retry_after.has_value()) return details;
  RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(*retry_after));
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(*retry_after % absl::Seconds(1))));
  google::protobuf::Any* const any = details.add_details();
  any->set_type_url(kRetryInfoUrl);
  any->set_value(retry.SerializeAsString());
  return details;
}

absl::Status StatusFromDetails(const StatusDetails& details) {
  constexpr int kLastCode =
      static_cast<int>(absl::StatusCode::kUnauthenticated);
  if (details.code() <= 0 || details.code() > kLastCode) {
    return absl::InternalError(
        absl::StrCat("the peer's error cannot be read: code ", details.code()));
  }
  return WithRetryAfter(
      details, absl::Status(static_cast<absl::StatusCode>(details.code()),
                            details.message()));
}

std::string StatusToBytes(const absl::Status& status) {
  return StatusToDetails(status).SerializeAsString();
}

absl::Status StatusFromBytes(absl::string_view bytes) {
  StatusDetails details;
  if (bytes.size() > kMaxStatusBytes ||
      !details.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InternalError(absl::StrCat(
        "the peer's error cannot be read: ", bytes.size(), " bytes"));
  }
  return StatusFromDetails(details);
}

}  // namespace muster
