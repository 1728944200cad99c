#include "common/rpc/retry_after.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kPayload[] = "muster/retry_after_us";
constexpr absl::Duration kLongest = absl::Minutes(1);

}  // namespace

void SetRetryAfter(absl::Duration pause, absl::Status* status) {
  status->SetPayload(
      kPayload, absl::Cord(absl::StrCat(absl::ToInt64Microseconds(pause))));
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  int64_t microseconds = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &microseconds)) {
    return std::nullopt;
  }
  return std::clamp(absl::Microseconds(microseconds), absl::ZeroDuration(),
                    kLongest);
}

}  // namespace muster
