#include "worker/hook/nan_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NanGuardTest, LetsFiniteLossesPass) {
  StepRecord step;
  step.loss = 1e30;
  EXPECT_THAT(NanGuard("/job:worker/task:1").BeforePush(step), IsOk());
}

TEST(NanGuardTest, StopsAtNanAndInfinityNamingStepAndWorker) {
  for (const double loss : {std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    StepRecord step;
    step.step = 17;
    step.loss = loss;
    EXPECT_THAT(
        NanGuard("/job:worker/task:1").BeforePush(step),
        StatusIs(absl::StatusCode::kOutOfRange,
                 AllOf(HasSubstr("step 17"), HasSubstr("/job:worker/task:1"))));
  }
}

}  // namespace
}  // namespace muster
