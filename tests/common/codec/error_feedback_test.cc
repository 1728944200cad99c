// For each codec: nothing that it takes from a gradient is lost.
#include "common/codec/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr uint32_t kSeed = 22;
// Two tiles and a part of one.
constexpr int64_t kValues = 2500;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class ErrorFeedbackTest : public testing::TestWithParam<std::string> {
 protected:
  ErrorFeedbackTest() : codec_(FindCodec(GetParam()).value()) {}

  // The values that the shards would add for `gradient`.
  std::vector<float> Encode(const std::vector<float>& gradient) {
    bytes_.resize(EncodedBytes(codec_, gradient.size()));
    feedback_.Encode(0, gradient.size(), gradient.data(), bytes_.data());
    std::vector<float> decoded(gradient.size());
    codec_->Decode(bytes_.data(), gradient.size(), decoded.data());
    return decoded;
  }
  void Keep() { feedback_.Keep(0, feedback_.values()); }
  void TakeBack() { feedback_.TakeBack(0, feedback_.values(), bytes_.data()); }
  void Start(int64_t values) { feedback_.Clear(values); }
  float residual(int64_t i) const { return feedback_.residual()[i]; }

  const Codec* const codec_;
  ErrorFeedback feedback_{codec_};
  std::vector<char> bytes_;
  std::mt19937 random_{kSeed};
};

// Whole numbers that need 13 bits, of which no codec has as many: sums in
// float32 are exact, encoded values are not.
TEST_P(ErrorFeedbackTest, WhatWasAppliedAndTheResidualAreTheSumExactly) {
  Start(kValues);
  std::vector<double> gradients(kValues);
  std::vector<double> applied(kValues);
  int64_t rounded = 0;
  for (int step = 0; step < 60; ++step) {
    std::vector<float> gradient(kValues);
    for (float& value : gradient) {
      value = static_cast<float>(static_cast<int>(random_() % 8191) - 4095);
    }
    std::vector<float> decoded = Encode(gradient);
    // A push that fails is made again, with the same gradient.
    while (random_() % 4 == 0) decoded = Encode(gradient);
    const bool dropped = random_() % 4 == 0;
    dropped ? TakeBack() : Keep();
    for (int64_t i = 0; i < kValues; ++i) {
      gradients[i] += gradient[i];
      if (!dropped) applied[i] += decoded[i];
      if (residual(i) != 0) ++rounded;
      ASSERT_EQ(applied[i] + residual(i), gradients[i])
          << "value " << i << " after step " << step;
    }
  }
  EXPECT_GT(rounded, kValues) << "the codec took nothing: no test";
}

TEST_P(ErrorFeedbackTest, TheResidualIsWithinTheCodecsBound) {
  Start(kValues);
  std::normal_distribution<float> normal(0, 1e-3f);
  std::vector<double> gradients(kValues);
  std::vector<double> applied(kValues);
  constexpr int kSteps = 300;
  double largest = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> gradient(kValues);
    for (float& value : gradient) value = normal(random_);
    std::vector<float> before(feedback_.residual().begin(),
                              feedback_.residual().end());
    const std::vector<float> decoded = Encode(gradient);
    Keep();
    for (int64_t i = 0; i < kValues; ++i) {
      const double sum = std::abs(static_cast<double>(gradient[i]) + before[i]);
      largest = std::max(largest, sum);
      ASSERT_LE(std::abs(residual(i)), codec_->relative_error() * sum * 1.001 +
                                           codec_->absolute_error());
      gradients[i] += gradient[i];
      applied[i] += decoded[i];
    }
  }
  // One float32 addition a step; the subtraction of what was sent is exact.
  const double rounding = kSteps * largest * 0x1p-24;
  for (int64_t i = 0; i < kValues; ++i) {
    ASSERT_NEAR(applied[i] + residual(i), gradients[i], rounding);
  }
}

// Each time too little for the last bit of what is there.
TEST_P(ErrorFeedbackTest, SmallGradientsArriveInTime) {
  Start(1);
  const double step = codec_->relative_error() / 16;
  double applied = 0;
  double without = 0;
  for (int i = 0; i < 1600; ++i) {
    const float gradient = 1 + static_cast<float>(step);
    applied += Encode({gradient})[0];
    Keep();
    std::vector<char> bytes(EncodedBytes(codec_, 1));
    codec_->Encode(&gradient, 1, bytes.data());
    float alone;
    codec_->Decode(bytes.data(), 1, &alone);
    without += alone;
  }
  const double wanted = 1600 * (1 + step);
  EXPECT_NEAR(applied, wanted, 2 * codec_->relative_error());
  EXPECT_EQ(without, 1600) << "the codec alone loses all of it";
}

TEST_P(ErrorFeedbackTest, WhatFailedIsTheSameBytesAgain) {
  Start(kValues);
  std::vector<float> gradient(kValues);
  for (int step = 0; step < 3; ++step) {
    for (float& value : gradient) value = 1e-3f * (random_() % 1000);
    Encode(gradient);
    const std::vector<char> first = bytes_;
    Encode(gradient);
    ASSERT_EQ(bytes_, first);
    Keep();
  }
}

TEST_P(ErrorFeedbackTest, ARangeIsKeptByItself) {
  Start(4);
  Encode({4095, 4095, 4095, 4095});
  feedback_.Keep(1, 2);
  EXPECT_EQ(residual(0), 0);
  EXPECT_NE(residual(1), 0);
  EXPECT_EQ(residual(1), residual(2));
  EXPECT_EQ(residual(3), 0);
}

TEST_P(ErrorFeedbackTest, WhatIsNotFiniteLeavesNoResidual) {
  Start(4);
  const std::vector<float> bad = {NAN, kInfinity, -kInfinity, 4095};
  for (const bool dropped : {false, true}) {
    const std::vector<float> decoded = Encode(bad);
    EXPECT_TRUE(std::isnan(decoded[0]));
    EXPECT_EQ(decoded[1], kInfinity);
    dropped ? TakeBack() : Keep();
    EXPECT_EQ(residual(0), 0);
    EXPECT_EQ(residual(1), 0);
    EXPECT_EQ(residual(2), 0);
    EXPECT_TRUE(std::isfinite(residual(3)));
  }
}

TEST_P(ErrorFeedbackTest, FiniteGradientsStayFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Start(2);
  for (int step = 0; step < 4; ++step) {
    for (const float value : Encode({kMax, -kMax})) {
      EXPECT_TRUE(std::isfinite(value));
    }
    step % 2 == 0 ? TakeBack() : Keep();
    EXPECT_TRUE(std::isfinite(residual(0)));
    EXPECT_TRUE(std::isfinite(residual(1)));
  }
}

TEST_P(ErrorFeedbackTest, ClearForgets) {
  Start(1);
  Encode({4095});
  TakeBack();
  EXPECT_EQ(residual(0), 4095);
  Start(1);
  EXPECT_EQ(residual(0), 0);
  EXPECT_EQ(Encode({0})[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Codecs, ErrorFeedbackTest,
                         testing::ValuesIn(CodecRegistry::Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
