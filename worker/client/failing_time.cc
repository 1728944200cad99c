#include "worker/client/failing_time.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kPayload[] = "muster/failing_us";

}  // namespace

void SetFailingTime(absl::Duration time, absl::Status* status) {
  status->SetPayload(kPayload,
                     absl::Cord(absl::StrCat(absl::ToInt64Microseconds(time))));
}

absl::Duration FailingTime(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  int64_t microseconds = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &microseconds)) {
    return absl::ZeroDuration();
  }
  return absl::Microseconds(microseconds);
}

}  // namespace muster
