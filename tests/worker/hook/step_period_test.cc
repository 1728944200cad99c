#include "worker/hook/step_period.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(StepPeriodTest, CountsMultiplesPassed) {
  StepPeriod period(100);
  period.Start(0);
  EXPECT_FALSE(period.IsOver(0));
  EXPECT_FALSE(period.IsOver(99));
  EXPECT_TRUE(period.IsOver(100));
  EXPECT_TRUE(period.IsOver(103));
  period.Start(103);
  EXPECT_FALSE(period.IsOver(199));
  EXPECT_TRUE(period.IsOver(250));
}

TEST(StepPeriodTest, ZeroIsNever) {
  const StepPeriod period(0);
  EXPECT_FALSE(period.IsOver(1'000'000));
}

}  // namespace
}  // namespace muster
