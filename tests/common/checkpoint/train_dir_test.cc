#include "common/checkpoint/train_dir.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TrainDirTest, NamesFoldersBySteps) {
  EXPECT_EQ(CheckpointName(0), "ckpt-000000000000");
  EXPECT_EQ(CheckpointName(2340), "ckpt-000000002340");
  EXPECT_EQ(ParseCheckpointName("ckpt-000000002340"), 2340);
  EXPECT_EQ(ParseCheckpointName(CheckpointName(int64_t{1} << 50)),
            int64_t{1} << 50);
}

TEST(TrainDirTest, TakesNoOtherNameForACheckpoint) {
  for (const char* name :
       {"ckpt-", "ckpt-1", "ckpt-00000000001", "ckpt-0000000000001",
        "ckpt--00000000001", "ckpt-+00000000001", "ckpt-00000000001x",
        "ckpt- 00000000001", ".tmp-ckpt-000000000001",
        "ckpt-99999999999999999999", "result.json", ""}) {
    EXPECT_FALSE(ParseCheckpointName(name).has_value()) << name;
  }
}

TEST(TrainDirTest, ListsTheNewestFirst) {
  FakeFileSystem fs("train");
  for (const int64_t step : {10, 2, 300}) {
    ASSERT_THAT(fs.CreateFolder("train/" + CheckpointName(step)), IsOk());
  }
  ASSERT_THAT(fs.CreateFolder("train/" + TemporaryName(400)), IsOk());
  EXPECT_THAT(ListCheckpoints(&fs, "train"),
              IsOkAndHolds(ElementsAre(300, 10, 2)));
}

TEST(TrainDirTest, CleansUpAfterADeadWriterOnly) {
  FakeFileSystem fs("train");
  for (const std::string& name :
       {TemporaryName(5), CheckpointName(1), ReplacedName(1), ReplacedName(2),
        std::string("events"), std::string(".tmp-mine")}) {
    ASSERT_THAT(fs.CreateFolder("train/" + name), IsOk());
  }
  ASSERT_THAT(CleanTrainDir(&fs, "train"), IsOk());
  EXPECT_THAT(fs.List("train"),
              IsOkAndHolds(ElementsAre(".tmp-mine", CheckpointName(1),
                                       CheckpointName(2), "events")));
}

TEST(TrainDirTest, AProbe_LeavesNothing) {
  FakeFileSystem fs("train");
  ASSERT_THAT(ProbeTrainDir(&fs, "train"), IsOk());
  EXPECT_THAT(fs.List("train"), IsOkAndHolds(IsEmpty()));
}

TEST(TrainDirTest, WhateverASaveNeedsAndLacks_IsFoundByTheProbe) {
  FakeFileSystem counted("train");
  ASSERT_THAT(ProbeTrainDir(&counted, "train"), IsOk());
  for (int call = 1; call <= counted.calls(); ++call) {
    FakeFileSystem fs("train");
    fs.FailAt(call, absl::UnimplementedError("Function not implemented"));
    EXPECT_THAT(ProbeTrainDir(&fs, "train"),
                StatusIs(absl::StatusCode::kUnimplemented,
                         AllOf(HasSubstr("no checkpoint can be saved there"),
                               HasSubstr("choose a --train_dir on another"))))
        << call;
    EXPECT_THAT(fs.List("train"), IsOkAndHolds(IsEmpty())) << call;
  }
}

TEST(TrainDirTest, AProbeOfAFullDisk_AsksForRoom) {
  FakeFileSystem fs("train");
  fs.FailAt(3, absl::ResourceExhaustedError("No space left on device"));
  EXPECT_THAT(
      ProbeTrainDir(&fs, "train"),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("make room")));
}

TEST(TrainDirTest, AProbeThatDied_IsCleanedUp) {
  FakeFileSystem counted("train");
  ASSERT_THAT(ProbeTrainDir(&counted, "train"), IsOk());
  for (int call = 2; call <= counted.calls(); ++call) {
    FakeFileSystem fs("train");
    fs.FailFrom(call, absl::UnknownError("killed"));
    EXPECT_FALSE(ProbeTrainDir(&fs, "train").ok());
    fs.Restart();
    ASSERT_THAT(CleanTrainDir(&fs, "train"), IsOk());
    EXPECT_THAT(fs.List("train"), IsOkAndHolds(IsEmpty())) << call;
  }
}

}  // namespace
}  // namespace muster
