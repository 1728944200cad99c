#include "common/rpc/deadline.h"

#include <algorithm>

#include "common/base/monotonic_wait.h"

namespace muster {

absl::Duration TransferTimeout(int64_t bytes) {
  constexpr double kMinBytesPerSecond = 1 << 20;
  return absl::Seconds(10) +
         absl::Seconds(static_cast<double>(std::max<int64_t>(bytes, 0)) /
                       kMinBytesPerSecond);
}

gpr_timespec ToGrpcDeadline(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) {
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  }
  if (deadline == absl::InfinitePast()) {
    return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  }
  // MonotonicClock counts from the Unix epoch, and gRPC counts the gaps, too.
  const timespec time =
      absl::ToTimespec(deadline - absl::UnixEpoch() + OwnAwakeTime().gaps());
  gpr_timespec result;
  result.tv_sec = time.tv_sec;
  result.tv_nsec = static_cast<int32_t>(time.tv_nsec);
  result.clock_type = GPR_CLOCK_MONOTONIC;
  return result;
}

}  // namespace muster
