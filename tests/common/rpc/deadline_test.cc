#include "common/rpc/deadline.h"

#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(DeadlineTest, ATransferHasASecondForEachMebibyte) {
  EXPECT_EQ(TransferTimeout(0), absl::Seconds(10));
  EXPECT_EQ(TransferTimeout(3 << 20), absl::Seconds(13));
  EXPECT_EQ(TransferTimeout(-1), absl::Seconds(10));
}

TEST(DeadlineTest, IsTheSamePointOfTheMonotonicClock) {
  const gpr_timespec deadline =
      ToGrpcDeadline(MonotonicClock().Now() + absl::Seconds(5));
  EXPECT_EQ(deadline.clock_type, GPR_CLOCK_MONOTONIC);
  const gpr_timespec left =
      gpr_time_sub(deadline, gpr_now(GPR_CLOCK_MONOTONIC));
  EXPECT_LE(gpr_time_to_millis(left), 5001);  // rounds up
  EXPECT_GT(gpr_time_to_millis(left), 0);
}

TEST(DeadlineTest, InfinityStaysInfinite) {
  EXPECT_EQ(gpr_time_cmp(ToGrpcDeadline(absl::InfiniteFuture()),
                         gpr_inf_future(GPR_CLOCK_MONOTONIC)),
            0);
  EXPECT_EQ(gpr_time_cmp(ToGrpcDeadline(absl::InfinitePast()),
                         gpr_inf_past(GPR_CLOCK_MONOTONIC)),
            0);
}

}  // namespace
}  // namespace muster
