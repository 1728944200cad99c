#include "common/optimizer/learning_rate.h"

#include <cmath>
#include <limits>
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

// torch.optim.lr_scheduler.PolynomialLR(total_iters=10, power=2), torch 1.13.
TEST(LearningRateTest, FollowsAPolynomialAndStaysAtItsEnd) {
  const absl::StatusOr<LearningRate> rate =
      Make("name: 'polynomial' decay_steps: 10 power: 2");
  ASSERT_THAT(rate, IsOk());
  const double golden[] = {0.5,  0.405, 0.32, 0.245, 0.18, 0.125,
                           0.08, 0.045, 0.02, 0.005, 0,    0};
  for (int64_t t = 0; t < 12; ++t) {
    EXPECT_NEAR(rate->At(t), golden[t], 2e-16) << t;
  }
}

TEST(LearningRateTest, APolynomialMayEndAtAnyRate) {
  const absl::StatusOr<LearningRate> falling =
      Make("name: 'polynomial' decay_steps: 4 end_learning_rate: 0.1");
  ASSERT_THAT(falling, IsOk());
  EXPECT_EQ(falling->At(0), 0.5);
  EXPECT_DOUBLE_EQ(falling->At(1), 0.4);
  EXPECT_DOUBLE_EQ(falling->At(3), 0.2);
  EXPECT_EQ(falling->At(4), 0.1);
  EXPECT_EQ(falling->At(int64_t{1} << 62), 0.1);
  const absl::StatusOr<LearningRate> rising =
      Make("name: 'polynomial' decay_steps: 4 end_learning_rate: 1 power: 0.5");
  ASSERT_THAT(rising, IsOk());
  EXPECT_EQ(rising->At(0), 0.5);
  EXPECT_DOUBLE_EQ(rising->At(3), 0.75);
  EXPECT_EQ(rising->At(4), 1);
}

// torch.optim.lr_scheduler.MultiStepLR(milestones=[3, 6], gamma=0.1), whose
// milestones are the first steps of a new rate, ours the last of the old one.
TEST(LearningRateTest, ChangesBehindEachBoundary) {
  const absl::StatusOr<LearningRate> rate =
      Make("name: 'piecewise' boundary: [2, 5] value: [0.5, 0.05, 0.005]");
  ASSERT_THAT(rate, IsOk());
  const double golden[] = {0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.005, 0.005};
  for (int64_t t = 0; t < 8; ++t) EXPECT_EQ(rate->At(t), golden[t]) << t;
  EXPECT_EQ(rate->At(int64_t{1} << 62), 0.005);
}

TEST(LearningRateTest, PiecewiseMayEndAtZeroAndChangeAfterTheFirst) {
  const absl::StatusOr<LearningRate> rate =
      Make("name: 'piecewise' boundary: 0 value: [0.5, 0]");
  ASSERT_THAT(rate, IsOk());
  EXPECT_EQ(rate->At(0), 0.5);
  EXPECT_EQ(rate->At(1), 0);
}

TEST(LearningRateTest, OnPlateau_IsConstantButForTheWarmUp) {
  const absl::StatusOr<LearningRate> rate = Make(
      "name: 'on_plateau' metric: 'validation_loss' factor: 0.1 "
      "patience: 2 min_change: 0.01 mode: MIN warmup_steps: 2");
  ASSERT_THAT(rate, IsOk());
  const double golden[] = {0.25, 0.5, 0.5, 0.5};
  for (int64_t t = 0; t < 4; ++t) EXPECT_EQ(rate->At(t), golden[t]) << t;
}

TEST(LearningRateTest, OnPlateauWithABadField_IsRefusedByName) {
  const std::string fine =
      "name: 'on_plateau' metric: 'test_loss' factor: 0.5 patience: 1 ";
  ASSERT_THAT(Make(fine), IsOk());
  for (const auto& [change, field] :
       {std::pair("factor: 0", "factor"), std::pair("factor: 1", "factor"),
        std::pair("factor: nan", "factor"), std::pair("metric: ''", "metric"),
        std::pair("patience: 0", "patience"),
        std::pair("min_change: -1", "min_change"),
        std::pair("min_change: nan", "min_change"),
        std::pair("decay_steps: 3", "decay_steps")}) {
    ScheduleSpec spec;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(fine, &spec));
    ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(change, &spec));
    EXPECT_THAT(LearningRate::Create(0.5, spec),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string("schedule.") + field)))
        << change;
  }
}

// torch.optim.lr_scheduler.LinearLR(start_factor=0.25, total_iters=3).
TEST(LearningRateTest, WarmsUpLinearly) {
  const absl::StatusOr<LearningRate> rate = Make("warmup_steps: 4");
  ASSERT_THAT(rate, IsOk());
  const double golden[] = {0.125, 0.25, 0.375, 0.5, 0.5, 0.5};
  for (int64_t t = 0; t < 6; ++t) EXPECT_EQ(rate->At(t), golden[t]) << t;
}

TEST(LearningRateTest, WarmsUpTowardsEverySchedule) {
  for (const std::string schedule :
       {"name: 'constant'",
        "name: 'exponential' decay_rate: 0.25 decay_steps: 10",
        "name: 'cosine' decay_steps: 10",
        "name: 'piecewise' boundary: [2, 5] value: [0.5, 0.05, 0.005]",
        "name: 'polynomial' decay_steps: 10"}) {
    const absl::StatusOr<LearningRate> plain = Make(schedule);
    const absl::StatusOr<LearningRate> warm =
        Make(schedule + " warmup_steps: 4");
    ASSERT_THAT(plain, IsOk());
    ASSERT_THAT(warm, IsOk());
    for (int64_t t = 0; t < 12; ++t) {
      const double part = t < 4 ? static_cast<double>(t + 1) / 4 : 1;
      EXPECT_DOUBLE_EQ(warm->At(t), part * plain->At(t)) << schedule << t;
    }
  }
}

TEST(LearningRateTest, IsNeverNegativeNorBeyondAFloat) {
  for (const char* const schedule :
       {"warmup_steps: 9223372036854775807",
        "name: 'exponential' decay_rate: 10 decay_steps: 1",
        "name: 'exponential' decay_rate: 1e-300 decay_steps: 1",
        "name: 'cosine' decay_steps: 9223372036854775807",
        "name: 'polynomial' decay_steps: 3 power: 1e300",
        "name: 'polynomial' decay_steps: 7 power: 1e-300",
        "name: 'piecewise' boundary: 9223372036854775806 value: [0.5, 3e38]"}) {
    const absl::StatusOr<LearningRate> rate = Make(schedule);
    ASSERT_THAT(rate, IsOk()) << schedule;
    for (const int64_t t :
         {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{400},
          int64_t{1} << 62, std::numeric_limits<int64_t>::max()}) {
      EXPECT_GE(rate->At(t), 0) << schedule << t;
      EXPECT_LE(rate->At(t), std::numeric_limits<float>::max())
          << schedule << t;
    }
  }
}

TEST(LearningRateTest, DescribesEverySchedule) {
  EXPECT_THAT(LearningRate::DescribeSchedules(),
              AllOf(HasSubstr("constant: warmup_steps\n"),
                    HasSubstr("cosine: decay_steps, alpha, warmup_steps\n"),
                    HasSubstr("piecewise: boundary, value, warmup_steps\n")));
}

TEST(LearningRateTest, RefusesARateBeyondAFloat) {
  EXPECT_THAT(LearningRate::Create(1e39, ScheduleSpec()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1e+39")));
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
  refuses("warmup_steps: -1", "warmup_steps");
  refuses("name: 'polynomial'", "decay_steps");
  refuses("name: 'polynomial' decay_steps: 5 power: -1", "power");
  refuses("name: 'polynomial' decay_steps: 5 power: nan", "power");
  refuses("name: 'polynomial' decay_steps: 5 power: inf", "power");
  refuses("name: 'polynomial' decay_steps: 5 end_learning_rate: -1",
          "end_learning_rate");
  refuses("name: 'polynomial' decay_steps: 5 end_learning_rate: nan",
          "end_learning_rate");
  refuses("name: 'piecewise'", "boundary");
  refuses("name: 'piecewise' value: 0.5", "boundary");
  refuses("name: 'piecewise' boundary: 3 value: 0.5", "value");
  refuses("name: 'piecewise' boundary: -1 value: [0.5, 1]", "boundary");
  refuses("name: 'piecewise' boundary: [3, 3] value: [0.5, 1, 2]", "boundary");
  refuses("name: 'piecewise' boundary: 9223372036854775807 value: [0.5, 1]",
          "boundary");
  refuses("name: 'piecewise' boundary: 3 value: [0.5, -1]", "value");
  refuses("name: 'piecewise' boundary: 3 value: [0.5, nan]", "value");
  refuses("name: 'piecewise' boundary: 3 value: [0.5, 1e39]", "value");
  refuses("name: 'piecewise' boundary: 3 value: [0.1, 0.5]",
          "value must be the learning rate, 0.5, found 0.1");
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
  refuses("name: 'cosine' decay_steps: 5 power: 2", "power");
  refuses("boundary: 5", "boundary");
  refuses("name: 'exponential' decay_steps: 5 decay_rate: 0.5 value: 1",
          "value");
  refuses("name: 'exponential' decay_steps: 5 end_learning_rate: 0.5",
          "end_learning_rate");
  refuses("name: 'piecewise' boundary: 5 value: [0.5, 1] decay_steps: 3",
          "decay_steps");
  refuses("name: 'polynomial' decay_steps: 5 alpha: 0.1", "alpha");
  refuses("name: 'polynomial' decay_steps: 5 staircase: true", "staircase");
}

}  // namespace
}  // namespace muster
