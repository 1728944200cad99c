#include "common/optimizer/scale_learning_rate.h"

#include <cmath>
#include <string>

#include "common/optimizer/update_rule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/optimizer/rule_state.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLinear[] =
    "name: 'sgd' attr { name: 'learning_rate' f: 0.1 } "
    "learning_rate_scaling: LINEAR reference_batch_size: 64 ";

ScaledOptimizer Scale(const std::string& text, int64_t rows) {
  const auto scaled = ScaleLearningRate(ParseOptimizer(text), rows);
  EXPECT_THAT(scaled, IsOk());
  return scaled.ok() ? *scaled : ScaledOptimizer();
}

double RateAt(const OptimizerSpec& spec, int64_t t) {
  const auto rate = LearningRateOf(spec);
  EXPECT_THAT(rate, IsOk());
  return rate.ok() ? rate->At(t) : NAN;
}

TEST(ScaleLearningRateTest, MultipliesByTheRowsOfAnUpdate) {
  const ScaledOptimizer scaled = Scale(kLinear, 256);
  EXPECT_DOUBLE_EQ(RateAt(scaled.spec, 0), 0.4);
  EXPECT_EQ(scaled.text,
            "learning rate 0.4 = 0.1 x 4 (LINEAR: 256 rows of an update / 64)");
}

TEST(ScaleLearningRateTest, OrByTheirRoot) {
  const ScaledOptimizer scaled = Scale(
      "name: 'adam' learning_rate_scaling: SQRT reference_batch_size: 64", 32);
  // The rule's default.
  EXPECT_DOUBLE_EQ(RateAt(scaled.spec, 0), 0.001 * std::sqrt(0.5));
  EXPECT_THAT(scaled.text, HasSubstr("(SQRT of: 32 rows of an update / 64)"));
}

TEST(ScaleLearningRateTest, LeavesTheRestAsItIs) {
  const OptimizerSpec plain = ParseOptimizer("name: 'adam'");
  const ScaledOptimizer scaled = Scale("name: 'adam'", 256);
  EXPECT_EQ(scaled.spec.SerializeAsString(), plain.SerializeAsString());
  EXPECT_EQ(scaled.text, "");
  const ScaledOptimizer equal = Scale(kLinear, 64);
  EXPECT_EQ(RateAt(equal.spec, 0), 0.1);
}

// So that what is resolved cannot be resolved again.
TEST(ScaleLearningRateTest, LeavesNoScalingBehind) {
  const ScaledOptimizer scaled = Scale(kLinear, 256);
  EXPECT_EQ(scaled.spec.learning_rate_scaling(), NONE);
  EXPECT_EQ(scaled.spec.reference_batch_size(), 0);
}

TEST(ScaleLearningRateTest, ScalesEveryRateOfASchedule) {
  const OptimizerSpec piecewise =
      Scale(std::string(kLinear) +
                "schedule { name: 'piecewise' boundary: 5 value: [0.1, 0.03] }",
            128)
          .spec;
  EXPECT_DOUBLE_EQ(RateAt(piecewise, 5), 0.2);
  EXPECT_DOUBLE_EQ(RateAt(piecewise, 6), 0.06);
  const OptimizerSpec polynomial =
      Scale(std::string(kLinear) +
                "schedule { name: 'polynomial' decay_steps: 10 "
                "end_learning_rate: 0.01 warmup_steps: 2 }",
            128)
          .spec;
  EXPECT_DOUBLE_EQ(RateAt(polynomial, 0), 0.1);
  EXPECT_DOUBLE_EQ(RateAt(polynomial, 10), 0.02);
}

TEST(ScaleLearningRateTest, RefusesHalfOfItByName) {
  const auto refuses = [](const std::string& text, const std::string& part) {
    EXPECT_THAT(ScaleLearningRate(ParseOptimizer("name: 'sgd' " + text), 256),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part)))
        << text;
  };
  refuses("learning_rate_scaling: LINEAR",
          "optimizer.reference_batch_size is not set");
  refuses("reference_batch_size: 64",
          "optimizer.learning_rate_scaling is NONE");
  refuses("learning_rate_scaling: SQRT reference_batch_size: -1",
          "optimizer.reference_batch_size must be 1 or more, found -1");
  refuses(
      "attr { name: 'learning_rate' f: 3e38 } "
      "learning_rate_scaling: LINEAR reference_batch_size: 1",
      "optimizer.learning_rate_scaling LINEAR by 256");
}

TEST(ScaleLearningRateTest, RulesTakeNoUnresolvedScaling) {
  EXPECT_THAT(
      CreateUpdateRule(ParseOptimizer(kLinear)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("learning_rate_scaling"), HasSubstr("LINEAR"))));
  EXPECT_THAT(
      CreateUpdateRule(ParseOptimizer("name: 'sgd' reference_batch_size: 64")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("reference_batch_size")));
}

}  // namespace
}  // namespace muster
