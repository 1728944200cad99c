#include "worker/step/ps_exchange.h"

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

class PsExchangeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(tiny_.Load(std::vector<float>(kClasses, 0.0f)), IsOk());
    StepParameters::Options parameters;
    parameters.client = tiny_.client();
    parameters.clock = tiny_.clock();
    parameters.values = {tiny_.model()->parameter(kWeights),
                         tiny_.model()->parameter(kBias)};
    PsExchange::Options options;
    options.client = tiny_.client();
    options.gradients = {absl::MakeSpan(weights_), absl::MakeSpan(bias_)};
    Configure(&options);
    exchange_ = std::make_unique<PsExchange>(
        options, std::make_unique<StepParameters>(parameters));
    exchange_->BeginStep(/*step=*/1, {});
    ASSERT_THAT(exchange_->Prepare({}, {}), IsOk());
  }
  virtual void Configure(PsExchange::Options* options) {
    options->early = true;
  }
  bool HasLeft() {
    ComputedStep computed;
    exchange_->Describe(&computed);
    return computed.push_begun;
  }
  // Whether the shard has the gradient: it adds what is pushed to zeros.
  bool HasWeights() { return Has("logits/weights", weights_); }
  bool HasBias() { return Has("logits/bias", bias_); }

  // Each tensor is a part.
  TinyModel tiny_{kClasses, /*batch_size=*/1, CompileOptions::Mode::kTrain,
                  /*max_part_bytes=*/4};
  std::vector<float> weights_ = std::vector<float>(2 * kClasses, 1.0f);
  std::vector<float> bias_ = std::vector<float>(kClasses, 2.0f);
  std::unique_ptr<PsExchange> exchange_;
  bool Has(const std::string& tensor, const std::vector<float>& gradient) {
    return tiny_.shard().values(tensor) ==
           std::string(reinterpret_cast<const char*>(gradient.data()),
                       gradient.size() * sizeof(float));
  }
};

TEST_F(PsExchangeTest, AGradientLeavesWhenItIsHeardOf) {
  ASSERT_THAT(exchange_->OnForward(0.5), IsOk());
  EXPECT_FALSE(HasLeft());
  exchange_->OnGradient(kBias);
  EXPECT_TRUE(HasLeft());
  EXPECT_TRUE(HasBias());
  EXPECT_FALSE(HasWeights());
  ASSERT_THAT(exchange_->Send(), IsOk());
  ASSERT_THAT(exchange_->Finish(), IsOk());
  EXPECT_TRUE(HasWeights());
}

TEST_F(PsExchangeTest, GivenUpTheRestStays) {
  ASSERT_THAT(exchange_->OnForward(0.5), IsOk());
  exchange_->OnGradient(kBias);
  exchange_->EndStep();
  EXPECT_TRUE(HasBias());
  EXPECT_FALSE(HasWeights());
  EXPECT_FALSE(HasLeft());
}

TEST_F(PsExchangeTest, ABadLossHoldsAll) {
  for (const double loss : {double{kNan}, double{kInf}}) {
    ASSERT_THAT(exchange_->OnForward(loss), IsOk());
    exchange_->OnGradient(kBias);
    exchange_->OnGradient(kWeights);
    EXPECT_FALSE(HasLeft());
    exchange_->EndStep();
  }
  EXPECT_FALSE(HasBias());
}

TEST_F(PsExchangeTest, ABadGradientHoldsItselfAndAllAfterIt) {
  bias_[3] = kInf;
  ASSERT_THAT(exchange_->OnForward(0.5), IsOk());
  exchange_->OnGradient(kBias);
  exchange_->OnGradient(kWeights);
  EXPECT_FALSE(HasLeft());
  EXPECT_FALSE(HasWeights());
}

TEST_F(PsExchangeTest, AGradientOfAnotherPlaceLeavesFromThere) {
  std::vector<float> bias(kClasses, 3.0f);
  std::vector<float> weights(2 * kClasses, 4.0f);
  exchange_->PushFrom({{nullptr, weights.size()}, {nullptr, bias.size()}});
  ASSERT_THAT(exchange_->OnForward(0.5), IsOk());
  exchange_->PushFrom(kBias, absl::MakeSpan(bias));
  exchange_->OnGradient(kBias);
  EXPECT_TRUE(Has("logits/bias", bias));
  exchange_->PushFrom({absl::MakeSpan(weights), absl::MakeSpan(bias_)});
  ASSERT_THAT(exchange_->Send(), IsOk());
  ASSERT_THAT(exchange_->Finish(), IsOk());
  EXPECT_TRUE(Has("logits/weights", weights));
  EXPECT_TRUE(Has("logits/bias", bias)) << "once";
}

TEST_F(PsExchangeTest, CountsTheBytesOfBothWays) {
  constexpr int64_t kBytes = 3 * kClasses * sizeof(float);
  ASSERT_THAT(exchange_->OnForward(0.5), IsOk());
  ASSERT_THAT(exchange_->Send(), IsOk());
  ASSERT_THAT(exchange_->Finish(), IsOk());
  const ExchangedBytes bytes = exchange_->bytes();
  EXPECT_EQ(bytes.sent, kBytes);
  EXPECT_EQ(bytes.sent_float32, kBytes);
  EXPECT_EQ(bytes.received, kBytes);
  EXPECT_EQ(bytes.received_float32, kBytes);
  EXPECT_EQ(bytes.sent_to_others, kBytes);
  EXPECT_EQ(bytes.received_from_others, kBytes);
  EXPECT_EQ(bytes.pushes, 1);
}

class NonFinitePsExchangeTest : public PsExchangeTest {
 protected:
  void Configure(PsExchange::Options* options) override {
    options->early = true;
    options->allow_non_finite = true;
  }
};

TEST_F(NonFinitePsExchangeTest, WhatNeedNotBeFiniteLeavesAsItIs) {
  bias_[3] = kInf;
  ASSERT_THAT(exchange_->OnForward(kInf), IsOk());
  exchange_->OnGradient(kBias);
  EXPECT_TRUE(HasBias());
}

class LatePsExchangeTest : public PsExchangeTest {
 protected:
  void Configure(PsExchange::Options* options) override {
    options->early = false;
  }
};

TEST_F(LatePsExchangeTest, NotEarlyItLeavesAtTheEnd) {
  ASSERT_THAT(exchange_->OnForward(0.5), IsOk());
  exchange_->OnGradient(kBias);
  exchange_->OnGradient(kWeights);
  StepTimes times;
  ASSERT_THAT(exchange_->OnComputed(absl::OkStatus(), &times), IsOk());
  EXPECT_FALSE(HasLeft());
  EXPECT_FALSE(HasBias());
  ASSERT_THAT(exchange_->Send(), IsOk());
  ASSERT_THAT(exchange_->Finish(), IsOk());
  EXPECT_TRUE(HasBias());
  EXPECT_TRUE(HasWeights());
}

TEST_F(PsExchangeTest, APushHasTheFactorOfItsStepsToken) {
  StepToken token;
  token.set_learning_rate_factor(0.25);
  exchange_->BeginStep(/*step=*/2, token);
  ASSERT_THAT(exchange_->Send(), IsOk());
  ASSERT_THAT(exchange_->Finish(), IsOk());
  EXPECT_EQ(tiny_.shard().learning_rate_factor(), 0.25);
  exchange_->EndStep();
  exchange_->BeginStep(/*step=*/3, {});
  ASSERT_THAT(exchange_->Prepare({}, {}), IsOk());
  ASSERT_THAT(exchange_->Send(), IsOk());
  ASSERT_THAT(exchange_->Finish(), IsOk());
  EXPECT_EQ(tiny_.shard().learning_rate_factor(), 0);
}

class BoundedPsExchangeTest : public PsExchangeTest {
 protected:
  void Configure(PsExchange::Options* options) override {
    options->early = false;
    options->brings_values = true;
    options->bounded = true;
  }
  // One step at `clock`, whose values serve until `until`; returns how many
  // bytes of values have come by its end.
  int64_t Step(int64_t clock, int64_t until) {
    StepToken token;
    token.set_clock(clock);
    token.set_values_until_clock(until);
    exchange_->BeginStep(++step_, token);
    EXPECT_THAT(exchange_->Prepare({}, token), IsOk());
    StepTimes times;
    EXPECT_THAT(exchange_->OnComputed(absl::OkStatus(), &times), IsOk());
    EXPECT_THAT(exchange_->Send(), IsOk());
    EXPECT_THAT(exchange_->Finish(), IsOk());
    exchange_->EndStep();
    return exchange_->bytes().received / kBytes;
  }

 private:
  static constexpr int64_t kBytes = 3 * kClasses * sizeof(float);
  int64_t step_ = 0;
};

TEST_F(BoundedPsExchangeTest, APushBringsValuesThatWillServe) {
  // Pulled, and brought for the next.
  EXPECT_EQ(Step(0, 2), 2);
  EXPECT_EQ(Step(1, 2), 3);
  // Those were brought; no more are, so that the next step pulls.
  EXPECT_EQ(Step(2, 2), 3);
  EXPECT_EQ(Step(3, 3), 4);
}

TEST_F(BoundedPsExchangeTest, ValuesThatAreTooOldArePulledAnew) {
  EXPECT_EQ(Step(0, 2), 2);
  // It was away, and begins at the clock of the slowest.
  EXPECT_EQ(Step(7, 7), 3);
}

}  // namespace
}  // namespace muster
