#include "worker/hook/rate_meter.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

StepRecord StepAt(int second, int64_t global_step) {
  StepRecord step;
  step.now = absl::UnixEpoch() + absl::Seconds(second);
  step.global_step = global_step;
  step.examples = 128;
  step.loss = second;
  step.staleness = 1;
  return step;
}

TEST(RateMeterTest, IsZeroBeforeTheFirstStep) {
  RateMeter meter;
  meter.Start(absl::UnixEpoch(), 5);
  EXPECT_EQ(meter.steps_per_s(), 0);
  EXPECT_EQ(meter.mean_loss(), 0);
}

TEST(RateMeterTest, DividesByTheWindow) {
  RateMeter meter;
  meter.Start(absl::UnixEpoch(), 10);
  meter.Add(StepAt(2, 13));
  meter.Add(StepAt(4, 18));
  EXPECT_DOUBLE_EQ(meter.steps_per_s(), 0.5);
  EXPECT_DOUBLE_EQ(meter.examples_per_s(), 64);
  EXPECT_DOUBLE_EQ(meter.global_steps_per_s(), 2);
  EXPECT_DOUBLE_EQ(meter.mean_loss(), 3);
  EXPECT_DOUBLE_EQ(meter.mean_staleness(), 1);
}

}  // namespace
}  // namespace muster
