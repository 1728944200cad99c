#include "common/rpc/retry_after.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "proto/status.pb.h"

namespace muster {
namespace {

constexpr absl::Duration kLongest = absl::Minutes(1);

}  // namespace

void SetRetryAfter(absl::Duration pause, absl::Status* status) {
  RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(pause));
  retry.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(pause % absl::Seconds(1))));
  status->SetPayload(kRetryInfoUrl, absl::Cord(retry.SerializeAsString()));
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryInfoUrl);
  RetryInfo retry;
  if (!payload.has_value() || !retry.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return std::clamp(absl::Seconds(retry.retry_delay().seconds()) +
                        absl::Nanoseconds(retry.retry_delay().nanos()),
                    absl::ZeroDuration(), kLongest);
}

}  // namespace muster
