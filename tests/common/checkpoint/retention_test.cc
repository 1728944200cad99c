#include "common/checkpoint/retention.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest_file.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kHour = 3600;

TEST(RetentionTest, KeepsTheNewest) {
  EXPECT_THAT(CheckpointsToRemove({{50}, {40}, {30}, {20}}, {3, 0}),
              ElementsAre(20));
  EXPECT_THAT(CheckpointsToRemove({{50}, {40}}, {3, 0}), IsEmpty());
  EXPECT_THAT(CheckpointsToRemove({}, {3, 0}), IsEmpty());
}

TEST(RetentionTest, KeepsTwoWhateverIsAsked) {
  EXPECT_THAT(CheckpointsToRemove({{3}, {2}, {1}}, {1, 0}), ElementsAre(1));
}

TEST(RetentionTest, KeepsTheFirstOfEveryPeriodButTheRunsFirst) {
  EXPECT_THAT(CheckpointsToRemove({{70, 5 * kHour},
                                   {60, 4.5 * kHour},
                                   {50, 4.2 * kHour},
                                   {40, 2.5 * kHour},
                                   {30, 2.1 * kHour},
                                   {20, kHour},
                                   {10, 0}},
                                  {2, 2}),
              // 30 is the first of [2 h, 4 h), 50 of [4 h, 6 h).
              ElementsAre(10, 20, 40));
}

TEST(RetentionTest, TheNewestCountForTheirPeriods) {
  // 20 is the first of its hour and will stay; 30 will not.
  EXPECT_THAT(
      CheckpointsToRemove({{30, 1.5 * kHour}, {20, 1.1 * kHour}}, {2, 1}),
      IsEmpty());
  EXPECT_THAT(CheckpointsToRemove({{50, 2.2 * kHour},
                                   {40, 1.9 * kHour},
                                   {30, 1.5 * kHour},
                                   {20, 1.1 * kHour}},
                                  {2, 1}),
              ElementsAre(30));
}

TEST(RetentionTest, ACheckpointOfUnknownTimeGoes) {
  EXPECT_THAT(
      CheckpointsToRemove({{30, 3 * kHour}, {20, 3 * kHour}, {10, 0}}, {2, 1}),
      ElementsAre(10));
}

// Ten hours with a save every 20 minutes, killed and started again after each
// of them: what stays is the same as in one go.
TEST(RetentionTest, SurvivesRestarts) {
  FakeClock clock;
  FakeFileSystem fs("train");
  const absl::Time start = clock.Now();
  for (int64_t step = 0; step <= 30; ++step) {
    // The writer knows nothing but the folder.
    ASSERT_THAT(SaveExample(&fs, "train", step, {2, 3}, step,
                            absl::ToDoubleSeconds(clock.Now() - start)),
                IsOk());
    clock.Advance(absl::Minutes(20));
  }
  EXPECT_THAT(ListCheckpoints(&fs, "train"),
              IsOkAndHolds(ElementsAre(30, 29, 27, 18, 9)));
}

TEST(RetentionTest, TheBestOneStaysBesideTheNewest) {
  EXPECT_THAT(CheckpointsToRemove({{50}, {40}, {30}, {20}}, {2, 0}, 30),
              ElementsAre(20));
  EXPECT_THAT(CheckpointsToRemove({{50}, {40}, {30}}, {2, 0}, 50),
              ElementsAre(30));
}

TEST(RetentionTest, ABetterOne_LeavesTheFormerToRetention) {
  FakeFileSystem fs("train");
  for (const int64_t step : {1, 2, 3, 4}) {
    ASSERT_THAT(SaveNamingBest(&fs, "train", step, /*best_step=*/1), IsOk());
  }
  EXPECT_THAT(ListCheckpoints(&fs, "train"),
              IsOkAndHolds(ElementsAre(4, 3, 1)));
  ASSERT_THAT(SaveNamingBest(&fs, "train", 5, /*best_step=*/5), IsOk());
  ASSERT_THAT(SaveNamingBest(&fs, "train", 6, /*best_step=*/5), IsOk());
  ASSERT_THAT(SaveNamingBest(&fs, "train", 7, /*best_step=*/5), IsOk());
  EXPECT_THAT(ListCheckpoints(&fs, "train"),
              IsOkAndHolds(ElementsAre(7, 6, 5)));
}

TEST(RetentionTest, ASaveOfABetterOneThatFails_LeavesTheFormer) {
  FakeFileSystem fs("train");
  for (const int64_t step : {1, 2, 3}) {
    ASSERT_THAT(SaveNamingBest(&fs, "train", step, /*best_step=*/1), IsOk());
  }
  fs.FailFrom(10, absl::ResourceExhaustedError("full"));
  ASSERT_FALSE(SaveNamingBest(&fs, "train", 4, /*best_step=*/4).ok());
  EXPECT_THAT(ListCheckpoints(&fs, "train"),
              IsOkAndHolds(ElementsAre(3, 2, 1)));
}

TEST(RetentionTest, ADamagedManifestKeepsNothingForGood) {
  FakeFileSystem fs("train");
  for (int64_t step = 1; step <= 3; ++step) {
    ASSERT_THAT(SaveExample(&fs, "train", step, {3, 1}, step,
                            static_cast<double>(step) * kHour),
                IsOk());
  }
  fs.SetContents(absl::StrCat("train/", CheckpointName(1), "/", kManifestFile),
                 "rubbish");
  ASSERT_THAT(SaveExample(&fs, "train", 4, {3, 1}, 4, 4 * kHour), IsOk());
  EXPECT_THAT(ListCheckpoints(&fs, "train"),
              IsOkAndHolds(ElementsAre(4, 3, 2)));
}

}  // namespace
}  // namespace muster
