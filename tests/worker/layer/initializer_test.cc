#include "worker/layer/initializer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

std::vector<double> Fill(const std::string& kind, const Shape& shape,
                         uint64_t seed = 1,
                         const std::string& name = "conv1/weights",
                         double value = 0) {
  std::vector<double> values(shape.num_elements());
  FillInitialValues(MakeInitializer(kind, value), seed, name, shape,
                    absl::MakeSpan(values));
  return values;
}

double Deviation(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double v : values) {
    sum += v;
    squares += v * v;
  }
  const double mean = sum / values.size();
  return std::sqrt(squares / values.size() - mean * mean);
}

TEST(InitializerTest, GlorotUniformFillsItsRange) {
  const std::vector<double> values = Fill("glorot_uniform", {64, 32, 5, 5});
  const double limit = std::sqrt(6.0 / (25 * 32 + 25 * 64));
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  EXPECT_LT(largest, limit);
  EXPECT_GT(largest, 0.999 * limit);
  // 51,200 draws: the deviation's own is 0.2 %; five of those.
  EXPECT_NEAR(Deviation(values), limit / std::sqrt(3.0), 0.01 * limit);
}

TEST(InitializerTest, GroupsHaveFansOfTheirOwn) {
  Initializer glorot = MakeInitializer("glorot_uniform", 0);
  glorot.groups = 512;
  std::vector<double> values(512 * 2 * 9);  // of 512 channels, twice as many
  FillInitialValues(glorot, 1, "w", {2 * 512, 1, 3, 3}, absl::MakeSpan(values));
  const double limit = std::sqrt(6.0 / (9 + 2 * 9));
  const double largest = *std::max_element(values.begin(), values.end());
  EXPECT_LT(largest, limit);
  EXPECT_GT(largest, 0.99 * limit);
}

TEST(InitializerTest, HeNormalHasItsDeviation) {
  const std::vector<double> values = Fill("he_normal", {256, 784});
  const double deviation = std::sqrt(2.0 / 784);
  // 200,704 draws: the deviation's own is 0.16 %; six of those.
  EXPECT_NEAR(Deviation(values), deviation, 0.01 * deviation);
}

TEST(InitializerTest, ConstantsAreConstant) {
  EXPECT_EQ(Fill("zeros", {3}), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(Fill("ones", {2}), (std::vector<double>{1, 1}));
  EXPECT_EQ(Fill("constant", {2}, 1, "b", 0.25),
            (std::vector<double>{0.25, 0.25}));
}

// The values of every run that was ever made depend on these numbers.
TEST(InitializerTest, ValuesNeverChange) {
  const std::vector<double> glorot = Fill("glorot_uniform", {2, 2}, 7, "a");
  EXPECT_EQ(glorot[0], -0x1.b8fab797ca25ep-3);
  EXPECT_EQ(glorot[3], -0x1.afe5c1c0b34b8p-3);
  EXPECT_EQ(Fill("he_normal", {2, 2}, 7, "a")[1], 0x1.b1d8bbab7daep+0);
}

TEST(InitializerTest, ValuesDependOnSeedAndName) {
  const std::vector<double> values = Fill("glorot_uniform", {8, 8}, 1, "a");
  EXPECT_EQ(values, Fill("glorot_uniform", {8, 8}, 1, "a"));
  EXPECT_NE(values, Fill("glorot_uniform", {8, 8}, 2, "a"));
  EXPECT_NE(values, Fill("glorot_uniform", {8, 8}, 1, "b"));
}

TEST(InitializerTest, FloatsAreTheRoundedDoubles) {
  const std::vector<double> doubles = Fill("he_normal", {4, 4}, 3, "w");
  std::vector<float> floats(16);
  FillInitialValues(MakeInitializer("he_normal", 0), 3, "w", {4, 4},
                    absl::MakeSpan(floats));
  for (size_t i = 0; i < floats.size(); ++i) {
    EXPECT_EQ(floats[i], static_cast<float>(doubles[i]));
  }
}

}  // namespace
}  // namespace muster
