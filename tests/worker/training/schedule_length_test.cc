#include "worker/training/schedule_length.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::google::protobuf::TextFormat;
using ::testing::HasSubstr;

StopSpec Stop(const std::string& text) {
  StopSpec stop;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &stop));
  return stop;
}

OptimizerSpec Scheduled(const std::string& schedule) {
  OptimizerSpec optimizer;
  optimizer.set_name("sgd");
  EXPECT_TRUE(
      TextFormat::ParseFromString(schedule, optimizer.mutable_schedule()));
  return optimizer;
}

// Of 30 updates.
constexpr EpochLength kEpoch = {120, 4};

TEST(UpdatesUntilStopTest, StepsOrEpochsWhicheverComesFirst) {
  EXPECT_EQ(UpdatesUntilStop(Stop("steps: 100"), kEpoch), 100);
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 2.5"), kEpoch), 75);
  EXPECT_EQ(UpdatesUntilStop(Stop("steps: 100 epochs: 2"), kEpoch), 60);
  EXPECT_EQ(UpdatesUntilStop(Stop("steps: 50 epochs: 2"), kEpoch), 50);
  EXPECT_EQ(UpdatesUntilStop(Stop("seconds: 5"), kEpoch), 0);
}

TEST(UpdatesUntilStopTest, EpochsOfUnknownLength_ArePassedOver) {
  const EpochLength unknown = {120, 0};
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 2"), unknown), 0);
  EXPECT_EQ(UpdatesUntilStop(Stop("steps: 50 epochs: 2"), unknown), 50);
  EXPECT_EQ(DescribeStop(Stop("epochs: 2"), unknown, "--set"),
            "the training ends after 2 epochs (stop.epochs), as --set says");
  EXPECT_EQ(DescribeStop(Stop("steps: 50 epochs: 2"), unknown, "--set"),
            "the training ends at step 50 (stop.steps=50) or after 2 epochs "
            "(stop.epochs), whichever comes first, as --set says");
}

TEST(UpdatesUntilStopTest, IsACountForAnyNumberOfEpochs) {
  // 0.29 * 100 is 28.999999999999996.
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 0.29"), {100}), 29);
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 1e300"), {30}), 1000000000000000);
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 1e300 steps: 9"), kEpoch), 9);
}

// The rest of an epoch goes into an update with rows of the next.
TEST(UpdatesUntilStopTest, RestsOfEpochs_AreUpdatesToo) {
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 1"), {100, 30}), 3);
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 3"), {100, 30}), 10);
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 0.5"), {100, 30}), 1);
  EXPECT_EQ(UpdatesUntilStop(Stop("epochs: 0.1"), {100, 30}), 0);
}

TEST(CheckEpochsTest, WantsACountThatPsTask0Takes) {
  EXPECT_THAT(CheckEpochs(Stop("epochs: 0.5"), 2), IsOk());
  EXPECT_THAT(CheckEpochs(Stop("steps: 3"), 2), IsOk());
  for (const char* const epochs : {"epochs: 1e14", "epochs: 1e-9"}) {
    EXPECT_THAT(CheckEpochs(Stop(epochs), 60000),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("of 60000 training examples: wanted 1 to "
                                   "1000000000000000 examples in all")))
        << epochs;
  }
}

TEST(DescribeStopTest, NamesTheConditionThatWillEndTheTraining) {
  EXPECT_EQ(DescribeStop(Stop("steps: 40"), kEpoch, "--set"),
            "the training ends at step 40 (stop.steps=40), as --set says");
  EXPECT_EQ(DescribeStop(Stop("epochs: 2.5"), kEpoch, "m.textproto"),
            "the training ends at step 75 (stop.epochs=2.5), as m.textproto "
            "says");
  EXPECT_EQ(DescribeStop(Stop("steps: 40 epochs: 5"), kEpoch, "m"),
            "the training ends at step 40 (stop.steps=40; stop.epochs=5 is "
            "later), as m says");
  EXPECT_EQ(DescribeStop(Stop("steps: 400 epochs: 5 seconds: 60 "
                              "target_accuracy: 0.9"),
                         kEpoch, "m"),
            "the training ends at step 150 (stop.epochs=5; stop.steps=400 is "
            "later) or after 60 s of training (stop.seconds) or at a test "
            "accuracy of 0.9 (stop.target_accuracy), whichever comes first, as "
            "m says");
  EXPECT_EQ(DescribeStop(Stop("plateau { metric: 'test_loss' patience: 3 }"),
                         kEpoch, "m"),
            "the training ends when test_loss has not become better for 3 "
            "evaluations (stop.plateau), as m says");
  EXPECT_EQ(DescribeStop(StopSpec(), kEpoch, "m"),
            "the training ends when all workers are done");
}

TEST(FitScheduleToTrainingTest, GivesAScheduleWithoutALengthThatOfTheTraining) {
  for (const char* const name : {"name: 'cosine'", "name: 'polynomial'"}) {
    OptimizerSpec optimizer = Scheduled(name);
    ASSERT_THAT(FitScheduleToTraining(Stop("epochs: 5"), {468}, &optimizer),
                IsOk());
    EXPECT_EQ(optimizer.schedule().decay_steps(), 2340) << name;
  }
}

TEST(FitScheduleToTrainingTest, ATrainingHasAtLeastOneUpdate) {
  OptimizerSpec optimizer = Scheduled("name: 'cosine'");
  ASSERT_THAT(FitScheduleToTraining(Stop("epochs: 0.001"), kEpoch, &optimizer),
              IsOk());
  EXPECT_EQ(optimizer.schedule().decay_steps(), 1);
}

TEST(FitScheduleToTrainingTest, LeavesOtherSchedulesAsTheyAre) {
  for (const char* const schedule :
       {"name: 'cosine' decay_steps: 7", "name: 'polynomial' decay_steps: 7",
        "name: 'exponential'", "name: 'constant'", ""}) {
    OptimizerSpec optimizer = Scheduled(schedule);
    // A length that it does not need may be missing.
    ASSERT_THAT(FitScheduleToTraining(Stop("seconds: 5"), kEpoch, &optimizer),
                IsOk());
    EXPECT_EQ(optimizer.schedule().DebugString(),
              Scheduled(schedule).schedule().DebugString());
  }
}

TEST(FitScheduleToTrainingTest, RefusesATrainingWithoutALength) {
  OptimizerSpec optimizer = Scheduled("name: 'cosine'");
  EXPECT_THAT(
      FitScheduleToTraining(Stop("seconds: 5"), kEpoch, &optimizer),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("neither stop.steps nor stop.epochs says how long")));
}

}  // namespace
}  // namespace muster
