#include "common/rpc/clock_offset.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace muster {
namespace {

absl::Time At(int64_t us) { return absl::FromUnixMicros(us); }

TEST(ClockOffsetTest, WithoutALook_NothingIsKnown) {
  EXPECT_FALSE(ClockOffset().is_known());
}

TEST(ClockOffsetTest, ALook_IsTakenToBeAnsweredHalfWay) {
  ClockOffset offset;
  offset.Add(At(1000), 501'050, At(1100));
  EXPECT_TRUE(offset.is_known());
  EXPECT_EQ(offset.offset_us(), 500'000);
  EXPECT_EQ(offset.error_us(), 52);
}

TEST(ClockOffsetTest, TheQuickestLook_Decides) {
  ClockOffset offset;
  offset.Add(At(0), 7'000, At(10'000));
  offset.Add(At(20'000), 25'010, At(20'020));
  offset.Add(At(30'000), 99'000, At(31'000));
  EXPECT_EQ(offset.offset_us(), 5'000);
  EXPECT_EQ(offset.error_us(), 12);
}

// However unequal the two ways are, the error is what it says.
TEST(ClockOffsetTest, AnAnswerAtAnyTimeOnTheWay_IsWithinTheError) {
  for (const int64_t there_after : {0, 30, 99, 100}) {
    ClockOffset offset;
    offset.Add(At(1000), 1000 + there_after - 400, At(1100));
    EXPECT_LE(std::abs(offset.offset_us() + 400), offset.error_us());
  }
}

}  // namespace
}  // namespace muster
