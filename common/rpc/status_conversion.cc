#include "common/rpc/status_conversion.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/error_reason.h"
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

// The payloads that go along; others are this process's own.
constexpr const char* kCarriedUrls[] = {kErrorInfoUrl, kRetryInfoUrl};

std::string CutMessage(const absl::Status& status) {
  std::string message(status.message().substr(0, kMaxMessageBytes));
  if (status.message().size() > kMaxMessageBytes) message += "...";
  return message;
}

// With those of the peer's details that are carried.
absl::Status WithPayloads(const StatusDetails& details, absl::Status status) {
  for (const google::protobuf::Any& any : details.details()) {
    for (const char* const url : kCarriedUrls) {
      if (any.type_url() != url) continue;
      status.SetPayload(url, absl::Cord(any.value()));
    }
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
  return WithPayloads(details, std::move(result));
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const StatusDetails details = StatusToDetails(status);
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.code()), details.message(),
      details.details().empty() && !absl::IsUnimplemented(status)
          ? ""
          : details.SerializeAsString());
}

StatusDetails StatusToDetails(const absl::Status& status) {
  StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(CutMessage(status));
  for (const char* const url : kCarriedUrls) {
    const auto payload = status.GetPayload(url);
    if (!payload.has_value()) continue;
    google::protobuf::Any* const any = details.add_details();
    any->set_type_url(url);
    any->set_value(std::string(*payload));
  }
  return details;
}

absl::Status StatusFromDetails(const StatusDetails& details) {
  constexpr int kLastCode =
      static_cast<int>(absl::StatusCode::kUnauthenticated);
  if (details.code() <= 0 || details.code() > kLastCode) {
    return Damaged(absl::InternalError(absl::StrCat(
        "the peer's error cannot be read: code ", details.code())));
  }
  return WithPayloads(
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
    return Damaged(absl::InternalError(absl::StrCat(
        "the peer's error cannot be read: ", bytes.size(), " bytes")));
  }
  return StatusFromDetails(details);
}

}  // namespace muster
