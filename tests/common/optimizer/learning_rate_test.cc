#include "common/optimizer/learning_rate.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/training.pb.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<LearningRate> Make(const std::string& schedule) {
  ScheduleSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(schedule, &spec));
  return LearningRate::Create(/*base=*/0.5, spec);
}

TEST(LearningRateTest, IsConstantByDefault) {
  const absl::StatusOr<LearningRate> rate = Make("");
  ASSERT_THAT(rate, IsOk());
  EXPECT_EQ(rate->At(0), 0.5);
  EXPECT_EQ(rate->At(int64_t{1} << 40), 0.5);
}

TEST(LearningRateTest, DecaysExponentially) {
  const absl::StatusOr<LearningRate> rate =
      Make("name: 'exponential' decay_rate: 0.25 decay_steps: 10");
  ASSERT_THAT(rate, IsOk());
  EXPECT_EQ(rate->At(0), 0.5);
  EXPECT_DOUBLE_EQ(rate->At(5), 0.25);
  EXPECT_DOUBLE_EQ(rate->At(10), 0.125);
  EXPECT_DOUBLE_EQ(rate->At(20), 0.03125);
}

TEST(LearningRateTest, DecaysInStairs) {
  const absl::StatusOr<LearningRate> rate = Make(
      "name: 'exponential' decay_rate: 0.25 decay_steps: 10 staircase: true");
  ASSERT_THAT(rate, IsOk());
  EXPECT_EQ(rate->At(9), 0.5);
  EXPECT_DOUBLE_EQ(rate->At(10), 0.125);
  EXPECT_DOUBLE_EQ(rate->At(19), 0.125);
}

TEST(LearningRateTest, FollowsACosineAndStaysAtItsEnd) {
  const absl::StatusOr<LearningRate> rate =
      Make("name: 'cosine' decay_steps: 100 alpha: 0.1");
  ASSERT_THAT(rate, IsOk());
  EXPECT_DOUBLE_EQ(rate->At(0), 0.5);
  EXPECT_DOUBLE_EQ(rate->At(25), 0.5 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2));
  EXPECT_DOUBLE_EQ(rate->At(50), 0.5 * 0.55);
  EXPECT_DOUBLE_EQ(rate->At(100), 0.05);
  EXPECT_DOUBLE_EQ(rate->At(1000), 0.05);
}

TEST(LearningRateTest, OffersTheNearestName) {
  EXPECT_THAT(Make("name: 'cosin'"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'cosin'"), HasSubstr("'cosine'"))));
}

TEST(LearningRateTest, RefusesFieldsOutOfRange) {
  const auto refuses = [](const std::string& schedule,
                          const std::string& field) {
    EXPECT_THAT(Make(schedule), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("schedule." + field)))
        << schedule;
  };
  refuses("name: 'exponential' decay_rate: 0.5", "decay_steps");
  refuses("name: 'exponential' decay_rate: 0.5 decay_steps: -1", "decay_steps");
  refuses("name: 'exponential' decay_steps: 5", "decay_rate");
  refuses("name: 'exponential' decay_steps: 5 decay_rate: -1", "decay_rate");
  refuses("name: 'exponential' decay_steps: 5 decay_rate: nan", "decay_rate");
  refuses("name: 'exponential' decay_steps: 5 decay_rate: inf", "decay_rate");
  refuses("name: 'cosine'", "decay_steps");
  refuses("name: 'cosine' decay_steps: 5 alpha: 1.5", "alpha");
  refuses("name: 'cosine' decay_steps: 5 alpha: nan", "alpha");
}

TEST(LearningRateTest, RefusesFieldsWithoutEffect) {
  const auto refuses = [](const std::string& schedule,
                          const std::string& field) {
    EXPECT_THAT(Make(schedule), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr("schedule." + field),
                                               HasSubstr("no use for it"))))
        << schedule;
  };
  refuses("decay_steps: 5", "decay_steps");
  refuses("name: 'constant' decay_rate: 0.5", "decay_rate");
  refuses("staircase: true", "staircase");
  refuses("name: 'exponential' decay_steps: 5 decay_rate: 0.5 alpha: 0.1",
          "alpha");
  refuses("name: 'cosine' decay_steps: 5 decay_rate: 0.5", "decay_rate");
}

}  // namespace
}  // namespace muster
