#include "worker/step/step_push.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"
#include "tests/worker/step/tiny_model.h"
#include "worker/step/step_parameters.h"

namespace muster {
namespace {

constexpr int64_t kClasses = 8;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
enum { kWeights, kBias };

class StepPushTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(tiny_.Load(std::vector<float>(kClasses, 0.0f)), IsOk());
    StepParameters::Options parameters;
    parameters.client = tiny_.client();
    parameters.clock = tiny_.clock();
    parameters.values = {tiny_.model()->parameter(kWeights),
                         tiny_.model()->parameter(kBias)};
    parameters_ = std::make_unique<StepParameters>(parameters);
    ASSERT_THAT(parameters_->Begin({}), IsOk());
    ASSERT_THAT(parameters_->Finish(), IsOk());
    options_.client = tiny_.client();
    options_.clock = tiny_.clock();
    options_.parameters = parameters_.get();
    options_.gradients = {ViewOf(absl::MakeConstSpan(weights_)),
                          ViewOf(absl::MakeConstSpan(bias_))};
    options_.early = true;
  }
  std::unique_ptr<StepPush> Begin() {
    return std::make_unique<StepPush>(&options_, /*step=*/1, /*round=*/0);
  }
  // Whether the shard has the gradient: it adds what is pushed to zeros.
  bool HasWeights() { return Has("logits/weights", weights_); }
  bool HasBias() { return Has("logits/bias", bias_); }

  // Each tensor is a part.
  TinyModel tiny_{kClasses, /*batch_size=*/1, CompileOptions::Mode::kTrain,
                  /*max_part_bytes=*/4};
  std::vector<float> weights_ = std::vector<float>(2 * kClasses, 1.0f);
  std::vector<float> bias_ = std::vector<float>(kClasses, 2.0f);
  std::unique_ptr<StepParameters> parameters_;
  StepPush::Options options_;

 private:
  bool Has(const std::string& tensor, const std::vector<float>& gradient) {
    return tiny_.shard().values(tensor) ==
           std::string(reinterpret_cast<const char*>(gradient.data()),
                       gradient.size() * sizeof(float));
  }
};

TEST_F(StepPushTest, AGradientLeavesWhenItIsHeardOf) {
  const auto push = Begin();
  ASSERT_THAT(push->OnForward(0.5), IsOk());
  EXPECT_TRUE(push->forward_end().has_value());
  EXPECT_FALSE(push->backward_end().has_value());
  EXPECT_FALSE(push->has_left());
  push->OnGradient(kBias);
  EXPECT_TRUE(push->backward_end().has_value());
  EXPECT_TRUE(push->has_left());
  EXPECT_TRUE(HasBias());
  EXPECT_FALSE(HasWeights());
  ASSERT_THAT(push->Finish(), IsOk());
  EXPECT_TRUE(HasWeights());
}

TEST_F(StepPushTest, GivenUpTheRestStays) {
  auto push = Begin();
  ASSERT_THAT(push->OnForward(0.5), IsOk());
  push->OnGradient(kBias);
  push.reset();
  EXPECT_TRUE(HasBias());
  EXPECT_FALSE(HasWeights());
}

TEST_F(StepPushTest, ABadLossHoldsAll) {
  for (const double loss : {double{kNan}, double{kInf}}) {
    const auto push = Begin();
    ASSERT_THAT(push->OnForward(loss), IsOk());
    push->OnGradient(kBias);
    push->OnGradient(kWeights);
    EXPECT_FALSE(push->has_left());
  }
  EXPECT_FALSE(HasBias());
}

TEST_F(StepPushTest, ABadGradientHoldsItselfAndAllAfterIt) {
  bias_[3] = kInf;
  const auto push = Begin();
  ASSERT_THAT(push->OnForward(0.5), IsOk());
  push->OnGradient(kBias);
  push->OnGradient(kWeights);
  EXPECT_FALSE(push->has_left());
  EXPECT_FALSE(HasWeights());
}

TEST_F(StepPushTest, WhatNeedNotBeFiniteLeavesAsItIs) {
  options_.allow_non_finite = true;
  bias_[3] = kInf;
  const auto push = Begin();
  ASSERT_THAT(push->OnForward(kInf), IsOk());
  push->OnGradient(kBias);
  EXPECT_TRUE(HasBias());
}

TEST_F(StepPushTest, NotEarlyItLeavesAtTheEnd) {
  options_.early = false;
  const auto push = Begin();
  ASSERT_THAT(push->OnForward(0.5), IsOk());
  push->OnGradient(kBias);
  push->OnGradient(kWeights);
  EXPECT_FALSE(push->has_left());
  EXPECT_FALSE(HasBias());
  ASSERT_THAT(push->Finish(), IsOk());
  EXPECT_TRUE(HasBias());
  EXPECT_TRUE(HasWeights());
}

}  // namespace
}  // namespace muster
