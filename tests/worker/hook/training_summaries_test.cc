#include "worker/hook/training_summaries.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/worker/hook/written_summaries.h"

namespace muster {
namespace {

// Halves every 10 updates.
LearningRate HalvingRate() {
  ScheduleSpec schedule;
  schedule.set_name("exponential");
  schedule.set_decay_rate(0.5);
  schedule.set_decay_steps(10);
  return LearningRate::Create(0.25, schedule).value();
}

class TrainingSummariesTest : public ::testing::Test {
 protected:
  TrainingSummariesTest() {
    tensors_.push_back({"w", {2}, /*trainable=*/true, value_, gradient_});
    tensors_.push_back({"b", {1}, /*trainable=*/true, value_, more_});
    tensors_.push_back({"mean", {2}, /*trainable=*/false, value_, gradient_});
  }

  // A step that was granted at one global step and counted as another.
  void Step(int64_t granted, int64_t counted, double loss, double accuracy) {
    StepRecord step;
    step.global_step = granted;
    step.loss = loss;
    step.accuracy = accuracy;
    step.tensors = tensors_;
    step.towers = towers_;
    EXPECT_EQ(*hook_.BeforePush(step), PushDecision::kPush);
    step.global_step = counted;
    step.tensors = {};
    step.towers = {};
    EXPECT_THAT(hook_.AfterStep(step), IsOk());
  }

  std::vector<float> value_ = {7, 7};
  std::vector<float> gradient_ = {2, 3};
  std::vector<float> more_ = {6};
  std::vector<StepTensor> tensors_;
  std::vector<TowerStep> towers_;
  WrittenSummaries written_;
  TrainingSummaries hook_{10, AccuracyCurve::kDrawn, HalvingRate(),
                          written_.Writer()};
};

TEST_F(TrainingSummariesTest, TheRateHasTheFactorOfTheNextUpdate) {
  TrainingSummaries hook(10, AccuracyCurve::kDrawn, HalvingRate(),
                         written_.Writer(),
                         [](int64_t update) { return update == 11 ? 0.5 : 1; });
  StepRecord step;
  step.global_step = 9;
  ASSERT_THAT(hook.BeforePush(step), IsOk());
  step.global_step = 10;
  ASSERT_THAT(hook.AfterStep(step), IsOk());
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "learning_rate"), 0.0625);
}

TEST_F(TrainingSummariesTest, FiguresThatStepsDoNotHave_AreLeftOut) {
  StepRecord step;
  step.global_step = 9;
  step.loss = step.accuracy = std::nan("");
  step.has_loss = false;
  ASSERT_THAT(hook_.BeforePush(step), IsOk());
  step.global_step = 10;
  ASSERT_THAT(hook_.AfterStep(step), IsOk());
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_EQ(written_.points[0].tensors.count("loss"), 0);
  EXPECT_EQ(written_.points[0].tensors.count("accuracy"), 0);
  EXPECT_EQ(written_.points[0].tensors.count("gradient_norm"), 1);
}

TEST_F(TrainingSummariesTest, ShowsEachOfSeveralTowers) {
  const std::vector<float> other = {0, 4};
  const std::vector<float> zero = {0};
  towers_.resize(2);
  towers_[0].gradients = {gradient_, more_, gradient_};
  towers_[1].gradients = {other, zero, gradient_};
  for (int i = 0; i < 10; ++i) {
    towers_[0].loss = i;
    towers_[1].loss = 2 * i;
    Step(i, i + 1, 1.5 * i, 0);
  }
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "tower_0/loss"), 4.5);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "tower_1/loss"), 9);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "tower_0/gradient_norm"), 7);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "tower_1/gradient_norm"), 4);
}

TEST_F(TrainingSummariesTest, ShowsHowMuchOfAStepIsAWaitForItsRows) {
  StepRecord step;
  step.times.begun = absl::UnixEpoch();
  step.times.read_begun = step.times.begun + absl::Milliseconds(1);
  step.times.read = step.times.begun + absl::Milliseconds(3);
  step.times.ended = step.times.begun + absl::Milliseconds(8);
  for (int i = 1; i <= 10; ++i) {
    EXPECT_EQ(*hook_.BeforePush(step), PushDecision::kPush);
    step.global_step = i;
    EXPECT_THAT(hook_.AfterStep(step), IsOk());
  }
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "input_wait"), 0.25);
}

TEST_F(TrainingSummariesTest, WritesMeansEveryPeriod) {
  for (int i = 0; i < 25; ++i) Step(i, i + 1, i, i / 100.0);
  ASSERT_EQ(written_.points.size(), 2u);
  EXPECT_EQ(written_.points[0].step, 10);
  EXPECT_EQ(written_.points[1].step, 20);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "loss"), 4.5);
  EXPECT_FLOAT_EQ(written_.Scalar(1, "loss"), 14.5);
  EXPECT_FLOAT_EQ(written_.Scalar(1, "accuracy"), 0.145);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "learning_rate"), 0.125);
  EXPECT_FLOAT_EQ(written_.Scalar(1, "learning_rate"), 0.0625);
}

TEST_F(TrainingSummariesTest, TheNormIsThatOfTrainableGradients) {
  Step(9, 10, 1, 1);
  // sqrt(2^2 + 3^2 + 6^2)
  EXPECT_FLOAT_EQ(written_.Scalar(0, "gradient_norm"), 7);
}

TEST_F(TrainingSummariesTest, TakesTheStepThatWasCounted) {
  Step(7, 12, 1, 1);
  EXPECT_TRUE(written_.points.empty());
  Step(12, 14, 3, 1);
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_EQ(written_.points[0].step, 14);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "loss"), 2);
}

TEST_F(TrainingSummariesTest, TheEndGetsAPoint) {
  for (int i = 0; i < 12; ++i) Step(i, i + 1, i, 0);
  ASSERT_THAT(hook_.AtEnd({}), IsOk());
  ASSERT_EQ(written_.points.size(), 2u);
  EXPECT_EQ(written_.points[1].step, 12);
  EXPECT_FLOAT_EQ(written_.Scalar(1, "loss"), 10.5);
  ASSERT_THAT(hook_.AtEnd({}), IsOk());
  EXPECT_EQ(written_.points.size(), 2u);
}

TEST_F(TrainingSummariesTest, ForgetsWhatARestoreTookBack) {
  Step(0, 1, 100, 0);
  EpochRecord epoch;
  epoch.global_step = 8;
  ASSERT_THAT(hook_.AfterEnter(epoch), IsOk());
  Step(9, 10, 2, 0);
  EXPECT_FLOAT_EQ(written_.Scalar(0, "loss"), 2);
}

TEST_F(TrainingSummariesTest, AStepThatWasGivenUpLeavesNoPoint) {
  StepRecord step;
  step.global_step = 9;
  step.tensors = tensors_;
  EXPECT_EQ(*hook_.BeforePush(step), PushDecision::kPush);
  EXPECT_TRUE(written_.points.empty());
}

}  // namespace
}  // namespace muster
