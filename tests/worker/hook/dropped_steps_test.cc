#include "worker/hook/dropped_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class DroppedStepsTest : public ::testing::Test {
 protected:
  void Step(bool dropped) {
    StepRecord record;
    record.step = ++step_;
    record.dropped = dropped;
    record.now = now_;
    EXPECT_THAT(hook_.AfterStep(record), IsOk());
    now_ += absl::Seconds(1);
  }

  ReportedLines lines_;
  DroppedSteps hook_{lines_.reporter()};
  int64_t step_ = 0;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(DroppedStepsTest, SaysNothingOfStepsThatCount) {
  for (int i = 0; i < 30; ++i) Step(/*dropped=*/false);
  EXPECT_THAT(hook_.AtEnd({}), IsOk());
  EXPECT_THAT(lines_.lines(), IsEmpty());
}

TEST_F(DroppedStepsTest, SaysTheFirstAtOnceAndOthersTogether) {
  for (int i = 0; i < 10; ++i) Step(/*dropped=*/true);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(StartsWith("I 1 step of this worker dropped, "
                                     "the last its step 1:")));
  Step(/*dropped=*/false);
  EXPECT_THAT(lines_.lines(),
              ElementsAre(StartsWith("I 1 step of"),
                          StartsWith("I 9 steps of this worker dropped, "
                                     "the last its step 10:")));
}

TEST_F(DroppedStepsTest, SaysTheRestAtTheEnd) {
  for (int i = 0; i < 3; ++i) Step(/*dropped=*/true);
  EXPECT_THAT(hook_.AtEnd({}), IsOk());
  EXPECT_THAT(lines_.lines(), ElementsAre(StartsWith("I 1 step of"),
                                          StartsWith("I 2 steps of")));
  EXPECT_THAT(hook_.AtEnd({}), IsOk());
  EXPECT_EQ(lines_.lines().size(), 2);
}

}  // namespace
}  // namespace muster
