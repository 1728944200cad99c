#include "common/checkpoint/checkpoint_choice.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointChoiceTest : public ::testing::Test {
 protected:
  // Saves each step, with the best one named.
  void Save(std::initializer_list<int64_t> steps, int64_t best_step) {
    for (const int64_t step : steps) {
      ASSERT_THAT(SaveNamingBest(&fs_, "train", step, best_step), IsOk());
    }
  }
  void Damage(int64_t step, const char* file) {
    fs_.SetContents(absl::StrCat("train/", CheckpointName(step), "/", file),
                    "rubbish");
  }
  // The step of what is opened.
  absl::StatusOr<int64_t> Open(const std::string& text) {
    ASSIGN_OR_RETURN(const CheckpointChoice choice,
                     ParseCheckpointChoice(text));
    ASSIGN_OR_RETURN(const auto opened,
                     OpenChosenCheckpoint(&fs_, "train", choice));
    return opened.reader->manifest().global_step();
  }

  FakeFileSystem fs_{"train"};
};

TEST_F(CheckpointChoiceTest, OpensTheOneThatIsChosen) {
  Save({10, 20, 30, 40}, /*best_step=*/20);
  EXPECT_THAT(Open("newest"), IsOkAndHolds(40));
  EXPECT_THAT(Open("best"), IsOkAndHolds(20));
  EXPECT_THAT(Open("30"), IsOkAndHolds(30));
}

TEST_F(CheckpointChoiceTest, OtherWords_AreRefused) {
  for (const char* text : {"", "bets", "-1", "1e3"}) {
    EXPECT_THAT(Open(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("newest, best or a global")))
        << text;
  }
}

TEST_F(CheckpointChoiceTest, AStepThatIsNotThere_TellsTheNearest) {
  EXPECT_THAT(Open("5"), StatusIs(absl::StatusCode::kNotFound,
                                  HasSubstr("there are no others")));
  Save({10, 20, 30}, /*best_step=*/10);
  EXPECT_THAT(Open("24"), StatusIs(absl::StatusCode::kNotFound,
                                   AllOf(HasSubstr("step 24 in"),
                                         HasSubstr("steps 20 and 30"))));
  EXPECT_THAT(Open("31"), StatusIs(absl::StatusCode::kNotFound,
                                   HasSubstr("nearest is that of step 30")));
}

TEST_F(CheckpointChoiceTest, ABestOneThatIsDamaged_IsNamedAndNoOtherIsOpened) {
  Save({10, 20, 30, 40}, /*best_step=*/20);
  Damage(20, kParametersFile);
  EXPECT_THAT(Open("best"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("the best one, by test_accuracy"),
                             HasSubstr(CheckpointName(20)))));
}

TEST_F(CheckpointChoiceTest, ABestOneThatIsGone_IsNamed) {
  Save({30, 40}, /*best_step=*/20);
  EXPECT_THAT(Open("best"), StatusIs(absl::StatusCode::kNotFound,
                                     HasSubstr("checkpoint of step 20")));
}

TEST_F(CheckpointChoiceTest, ARunThatKeepsNone_SaysWhy) {
  ASSERT_THAT(SaveSmall(&fs_, "train", 10, {}, 10), IsOk());
  EXPECT_THAT(Open("best"), StatusIs(absl::StatusCode::kNotFound,
                                     HasSubstr("no checkpoint.keep_best")));
}

// The newest is the best one, and cannot be used: the one before names another.
TEST_F(CheckpointChoiceTest, ANewestWhoseTensorsAreDamaged_StillNamesTheBest) {
  Save({10}, /*best_step=*/10);
  Save({20}, /*best_step=*/20);
  Damage(20, kParametersFile);
  EXPECT_THAT(Open("newest"), IsOkAndHolds(10));
  EXPECT_THAT(Open("best"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(CheckpointChoiceTest, WhatARestoreHasPassedOver_NamesNothing) {
  Save({10}, /*best_step=*/10);
  Save({40}, /*best_step=*/40);
  Damage(40, kParametersFile);
  ASSERT_THAT(SaveNamingBest(&fs_, "train", 20, /*best_step=*/10,
                             /*model_epoch=*/4),
              IsOk());
  EXPECT_THAT(Open("best"), IsOkAndHolds(10));
}

}  // namespace
}  // namespace muster
