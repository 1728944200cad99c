#include "worker/hook/tensor_summaries.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/worker/hook/written_summaries.h"

namespace muster {
namespace {

class TensorSummariesTest : public ::testing::Test {
 protected:
  TensorSummariesTest() {
    tensors_.push_back({"w", {3}, /*trainable=*/true, value_, gradient_});
    tensors_.push_back({"mean", {3}, /*trainable=*/false, value_, gradient_});
  }

  void BeforePush(int64_t granted) {
    StepRecord step;
    step.global_step = granted;
    step.tensors = tensors_;
    EXPECT_EQ(*hook_.BeforePush(step), PushDecision::kPush);
  }
  void AfterStep(int64_t counted) {
    StepRecord step;
    step.global_step = counted;
    EXPECT_THAT(hook_.AfterStep(step), IsOk());
  }

  std::vector<float> value_ = {0, 3, 4};
  std::vector<float> gradient_ = {2, 3, 6};
  std::vector<StepTensor> tensors_;
  WrittenSummaries written_;
  TensorSummaries hook_{10, written_.Writer()};
};

TEST_F(TensorSummariesTest, WritesHistogramsAndNorms) {
  BeforePush(9);
  // The next step writes over them before they are read.
  value_.assign(3, 0);
  AfterStep(10);
  ASSERT_EQ(written_.points.size(), 1u);
  EXPECT_EQ(written_.points[0].step, 10);
  EXPECT_EQ(written_.HistogramCount(0, "parameters/w"), 3);
  EXPECT_EQ(written_.HistogramCount(0, "gradients/w"), 3);
  EXPECT_EQ(written_.Scalar(0, "parameter_norms/w"), 5);
  EXPECT_EQ(written_.Scalar(0, "gradient_norms/w"), 7);
}

TEST_F(TensorSummariesTest, StateHasNoGradient) {
  BeforePush(9);
  AfterStep(10);
  EXPECT_EQ(written_.Scalar(0, "parameter_norms/mean"), 5);
  EXPECT_EQ(written_.points[0].tensors.count("gradients/mean"), 0u);
}

TEST_F(TensorSummariesTest, KeepsItsPeriod) {
  for (int i = 0; i < 35; ++i) {
    BeforePush(i);
    AfterStep(i + 1);
  }
  ASSERT_EQ(written_.points.size(), 3u);
  EXPECT_EQ(written_.points[2].step, 30);
}

TEST_F(TensorSummariesTest, ForgetsAStepThatWasGivenUp) {
  BeforePush(9);
  ASSERT_THAT(hook_.AfterEnter({}), IsOk());
  AfterStep(1);
  EXPECT_TRUE(written_.points.empty());
}

}  // namespace
}  // namespace muster
