#include "worker/hook/stop_conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class StopConditionsTest : public ::testing::Test {
 protected:
  StopConditions Make() {
    return StopConditions(options_, [this](absl::string_view reason,
                                           const absl::Status& failure) {
      EXPECT_THAT(failure, IsOk());
      reasons_.emplace_back(reason);
    });
  }
  static void Enter(StopConditions& hook) {
    EXPECT_THAT(hook.AfterEnter(EpochRecord()), IsOk());
  }
  static void Step(StopConditions& hook, absl::Duration at) {
    StepRecord step;
    step.now = absl::UnixEpoch() + at;
    EXPECT_THAT(hook.AfterStep(step), IsOk());
  }

  StopConditions::Options options_;
  std::vector<std::string> reasons_;
};

TEST_F(StopConditionsTest, OffByDefault) {
  StopConditions hook = Make();
  Enter(hook);
  hook.OnEvaluation({100, 0, {{{"accuracy", 1.0}}, {}}});
  Step(hook, absl::Hours(100));
  EXPECT_THAT(reasons_, SizeIs(0));
}

TEST_F(StopConditionsTest, StopsWhenTheRunHasTrainedItsTime) {
  options_.after = absl::Seconds(60);
  options_.trained = [](absl::Time now) {
    return now - absl::UnixEpoch() - absl::Seconds(10);
  };
  StopConditions hook = Make();
  Enter(hook);
  Step(hook, absl::Seconds(69));
  EXPECT_THAT(reasons_, SizeIs(0));
  Step(hook, absl::Seconds(70));
  EXPECT_THAT(reasons_, ElementsAre("seconds"));
}

TEST_F(StopConditionsTest, StopsWhenTheTargetIsReached) {
  options_.target_accuracy = 0.9;
  StopConditions hook = Make();
  Enter(hook);
  hook.OnEvaluation({100, 0, {{{"accuracy", 0.89}}, {}}});
  Step(hook, absl::Seconds(1));
  EXPECT_THAT(reasons_, SizeIs(0));
  hook.OnEvaluation({100, 0, {{{"accuracy", 0.9}}, {}}});
  Step(hook, absl::Seconds(2));
  EXPECT_THAT(reasons_, ElementsAre("target_accuracy"));
}

TEST_F(StopConditionsTest, ARestoreForgetsAnAccuracyThatIsLost) {
  options_.target_accuracy = 0.9;
  StopConditions hook = Make();
  hook.OnEvaluation({100, 0, {{{"accuracy", 0.95}}, {}}});
  Enter(hook);
  Step(hook, absl::Seconds(1));
  EXPECT_THAT(reasons_, SizeIs(0));
}

}  // namespace
}  // namespace muster
