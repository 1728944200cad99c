#include "worker/saved/mean_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

// Rounding of one float32 near 1.
constexpr float kRounding = 1e-6f;

std::vector<float> Mean(Prediction prediction, int64_t num_outputs,
                        const std::vector<std::vector<float>>& models) {
  const std::vector<absl::Span<const float>> outputs(models.begin(),
                                                     models.end());
  std::vector<float> mean(models.front().size());
  MeanOutputs(prediction, num_outputs, outputs, absl::MakeSpan(mean));
  return mean;
}

float Log(double p) { return static_cast<float>(std::log(p)); }

// (0.5, 0.5) and (0.9, 0.1) are 0.7 and 0.3; whatever is added to a row of
// outputs, they are the same probabilities.
TEST(MeanOutputsTest, OfClassesIsTheLogarithmOfTheMeanProbability) {
  EXPECT_THAT(
      Mean(Prediction::kSoftmax, 2, {{4, 4, Log(3), 0}, {Log(9), 0, 7, 7}}),
      ElementsAre(
          FloatNear(Log(0.7), kRounding), FloatNear(Log(0.3), kRounding),
          FloatNear(Log(0.625), kRounding), FloatNear(Log(0.375), kRounding)));
}

TEST(MeanOutputsTest, OfEachByItselfIsTheLogOfTheMeansOdds) {
  EXPECT_THAT(Mean(Prediction::kSigmoid, 2, {{0, Log(9)}, {Log(9), Log(9)}}),
              ElementsAre(FloatNear(Log(0.7 / 0.3), kRounding),
                          FloatNear(Log(9), 3 * kRounding)));
}

TEST(MeanOutputsTest, OfNumbersIsTheirMean) {
  EXPECT_THAT(
      Mean(Prediction::kIdentity, 3, {{1, 2, 3}, {3, -2, 0}, {2, 0, 6}}),
      ElementsAre(2, 0, 3));
}

TEST(MeanOutputsTest, OfOneModelIsItsOutputsBitForBit) {
  const std::vector<float> outputs = {0.1f, -3.7e-12f, 1e30f, -88.8f};
  for (const Prediction prediction :
       {Prediction::kSoftmax, Prediction::kSigmoid, Prediction::kIdentity}) {
    EXPECT_EQ(Mean(prediction, 2, {outputs}), outputs);
  }
}

TEST(MeanOutputsTest, NoProbabilityIsTooSmall) {
  EXPECT_THAT(
      Mean(Prediction::kSoftmax, 2, {{2000, 0}, {2000, 0}}),
      ElementsAre(FloatNear(0, kRounding), FloatNear(-2000, kRounding)));
  EXPECT_THAT(Mean(Prediction::kSoftmax, 2, {{2000, 0}, {0, 0}}),
              ElementsAre(FloatNear(Log(0.75), kRounding),
                          FloatNear(Log(0.25), kRounding)));
  EXPECT_THAT(Mean(Prediction::kSigmoid, 1, {{2000}, {2000}}),
              ElementsAre(FloatNear(2000, kRounding)));
  EXPECT_THAT(Mean(Prediction::kSigmoid, 1, {{-2000}, {0}}),
              ElementsAre(FloatNear(Log(0.25 / 0.75), kRounding)));
}

}  // namespace
}  // namespace muster
