#include "common/rpc/status_conversion.h"

#include <optional>
#include <string>

#include "common/rpc/retry_after.h"
#include "proto/status.pb.h"

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

constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

std::string RetryDetails(absl::Duration pause, const grpc::Status& status) {
  RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(pause));
  retry.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(pause % absl::Seconds(1))));
  StatusDetails details;
  details.set_code(status.error_code());
  details.set_message(status.error_message());
  google::protobuf::Any* const any = details.add_details();
  any->set_type_url(kRetryInfoUrl);
  any->set_value(retry.SerializeAsString());
  return details.SerializeAsString();
}

// The hint in a peer's details, if they are well-formed and have one.
std::optional<absl::Duration> FindRetryAfter(const std::string& bytes) {
  StatusDetails details;
  if (bytes.empty() || !details.ParseFromString(bytes)) return std::nullopt;
  for (const google::protobuf::Any& any : details.details()) {
    RetryInfo retry;
    if (any.type_url() != kRetryInfoUrl ||
        !retry.ParseFromString(any.value())) {
      continue;
    }
    return absl::Seconds(retry.retry_delay().seconds()) +
           absl::Nanoseconds(retry.retry_delay().nanos());
  }
  return std::nullopt;
}

}  // namespace

absl::Status ToAbslStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  const auto retry_after = FindRetryAfter(status.error_details());
  if (retry_after.has_value()) SetRetryAfter(*retry_after, &result);
  return result;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kMaxMessageBytes));
  if (status.message().size() > kMaxMessageBytes) message += "...";
  const grpc::Status plain(static_cast<grpc::StatusCode>(status.code()),
                           message);
  const auto retry_after = RetryAfter(status);
  if (!retry_after.has_value()) return plain;
  return grpc::Status(plain.error_code(), message,
                      RetryDetails(*retry_after, plain));
}

}  // namespace muster
