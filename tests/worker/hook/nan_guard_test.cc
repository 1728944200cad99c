#include "worker/hook/nan_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class NanGuardTest : public ::testing::Test {
 protected:
  NanGuardTest() {
    options_.task_name = "/job:worker/task:1";
    options_.max_refusals = 3;
    options_.reporter = said_.reporter();
    tensors_ = {{"conv1/weights", {100}, true, {}, weights_},
                {"norm1/mean", {2}, false, {}, mean_}};
    step_.step = 17;
    step_.global_step = 40;
    step_.loss = 0.5;
    step_.tensors = tensors_;
  }
  void MakeChief() {
    options_.stop_job = [this](absl::string_view reason,
                               const absl::Status& failure) {
      stop_reason_ = std::string(reason);
      failure_ = failure;
    };
  }

  NanGuard::Options options_;
  std::vector<float> weights_ = std::vector<float>(100, 1.0f);
  std::vector<float> mean_ = std::vector<float>(2, 1.0f);
  std::vector<StepTensor> tensors_;
  StepRecord step_;
  ReportedLines said_;
  std::string stop_reason_;
  absl::Status failure_;
};

TEST_F(NanGuardTest, LetsFiniteStepsPass) {
  step_.loss = 1e30;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kPush));
  EXPECT_EQ(guard.refused(), 0);
}

TEST_F(NanGuardTest, RefusesNonFiniteGradientsNamingTensorAndStep) {
  for (const float bad : {kNan, kInf, -kInf}) {
    weights_[70] = bad;
    said_.Clear();
    NanGuard guard(options_);
    EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
    EXPECT_THAT(
        said_.lines(),
        ElementsAre(
            AllOf(HasSubstr("step 17 of /job:worker/task:1 at global step 40"),
                  HasSubstr(absl::StrCat("gradient of 'conv1/weights' is ", bad,
                                         " at element 70")),
                  HasSubstr("1 of 3 in a row"))));
    EXPECT_EQ(guard.refused(), 1);
  }
}

// A program that computes gradients alone.
TEST_F(NanGuardTest, AStepWithoutALoss_IsJudgedByItsGradients) {
  step_.loss = kNan;
  step_.has_loss = false;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kPush));
  mean_[1] = kInf;
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
}

// The gradients are on a device, which has looked at them.
TEST_F(NanGuardTest, FetchesGradientsOnlyIfTheyAreNotFinite) {
  int fetches = 0;
  step_.fetch_tensors = [&] {
    ++fetches;
    return absl::OkStatus();
  };
  step_.gradients_are_finite = true;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kPush));
  EXPECT_EQ(fetches, 0);
  step_.gradients_are_finite = false;
  weights_[70] = kNan;
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  EXPECT_EQ(fetches, 1);
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("'conv1/weights' is nan")));
  step_.gradients_are_finite = true;
  step_.loss = kInf;
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  step_.fetch_tensors = [] {
    return absl::InternalError("the device is gone");
  };
  EXPECT_THAT(
      guard.BeforePush(step_),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("the device is gone")));
}

TEST_F(NanGuardTest, SaysWhatHadLeftBefore) {
  weights_[70] = kNan;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  step_.push_begun = true;
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  EXPECT_THAT(said_.lines(),
              ElementsAre(HasSubstr("nothing of it was pushed"),
                          HasSubstr("finite gradients of later layers "
                                    "had been pushed, nothing else")));
}

TEST_F(NanGuardTest, RefusesANonFiniteChangeOfAStateTensor) {
  mean_[1] = kInf;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  EXPECT_THAT(said_.lines(),
              ElementsAre(HasSubstr("change of 'norm1/mean' is inf")));
}

TEST_F(NanGuardTest, RefusesANonFiniteLoss) {
  step_.loss = kNan;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  EXPECT_THAT(said_.lines(), ElementsAre(HasSubstr("the loss is nan")));
}

TEST_F(NanGuardTest, EndsAWorkerAfterTheLastRefusalInARow) {
  step_.loss = kNan;
  NanGuard guard(options_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  }
  EXPECT_THAT(guard.BeforePush(step_),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("step 17 of /job:worker/task:1"),
                             HasSubstr("after 3 such steps in a row"))));
  EXPECT_THAT(said_.lines(), SizeIs(2));
}

TEST_F(NanGuardTest, AGoodStepBetweenThemStartsTheCountAnew) {
  NanGuard guard(options_);
  for (int i = 0; i < 4; ++i) {
    step_.loss = kNan;
    EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
    EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
    step_.loss = 0.5;
    EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kPush));
  }
  EXPECT_EQ(guard.refused(), 8);
}

TEST_F(NanGuardTest, OfVeryManyRefusals_EachThatDoublesThemIsSaid) {
  NanGuard guard(options_);
  for (int i = 0; i < 1000; ++i) {
    weights_[70] = kNan;
    ASSERT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
    weights_[70] = 1;
    ASSERT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kPush));
  }
  ASSERT_THAT(said_.lines(), SizeIs(16 + 5));
  EXPECT_THAT(said_.lines().back(), HasSubstr("512 in all"));
  EXPECT_EQ(guard.refused(), 1000);
}

TEST_F(NanGuardTest, TheChiefEndsTheJobInstead) {
  MakeChief();
  options_.max_refusals = 1;
  step_.loss = kInf;
  NanGuard guard(options_);
  EXPECT_THAT(guard.BeforePush(step_), IsOkAndHolds(PushDecision::kRefuse));
  EXPECT_EQ(stop_reason_, "non_finite");
  EXPECT_THAT(failure_, StatusIs(absl::StatusCode::kOutOfRange,
                                 HasSubstr("the loss is inf")));
}

}  // namespace
}  // namespace muster
