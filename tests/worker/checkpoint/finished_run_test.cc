#include "worker/checkpoint/finished_run.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// A train_dir of a run that ended at step 20 because of stop.steps 20.
class FinishedRunTest : public ::testing::Test {
 protected:
  FinishedRunTest() {
    std::string path = testing::TempDir() + "/runXXXXXX";
    wanted_.train_dir = mkdtemp(path.data());
    wanted_.training_fingerprint = 5;
    wanted_.goal.stop.set_steps(20);
    run_.set_training_fingerprint(5);
    run_.set_global_step(20);
    run_.set_stop_reason("steps");
    run_.mutable_stop()->set_steps(20);
    WriteText(wanted_.train_dir + "/result.json", "{}");
    Keep(20);
  }

  std::string Folder(int64_t step) const {
    return absl::StrCat(wanted_.train_dir, "/", CheckpointName(step));
  }
  // Writes run_ beside the checkpoint of this step.
  void Keep(int64_t step) {
    std::filesystem::create_directory(Folder(step));
    WriteText(FinishedRunPath(Folder(step)), FinishedRunText(run_));
  }
  bool IsFinished() {
    return FindFinishedRun(&file_system_, wanted_).has_value();
  }

  PosixFileSystem file_system_;
  WantedRun wanted_;
  FinishedRun run_;
};

TEST_F(FinishedRunTest, ItsOwnGoalIsMetOrNot) {
  EXPECT_TRUE(IsFinished());
  wanted_.goal.stop.set_steps(10);
  EXPECT_TRUE(IsFinished());
  wanted_.goal.stop.set_steps(21);
  EXPECT_FALSE(IsFinished());
  wanted_.goal.stop.set_epochs(1);
  EXPECT_FALSE(IsFinished()) << "it ended for another reason";
}

TEST_F(FinishedRunTest, ARunOfAnotherTrainingOrNamespace_IsAnother) {
  wanted_.training_fingerprint = 6;
  EXPECT_FALSE(IsFinished());
  wanted_.training_fingerprint = 5;
  wanted_.job_namespace = "b";
  EXPECT_FALSE(IsFinished());
  run_.set_namespace_("b");
  Keep(20);
  EXPECT_TRUE(IsFinished());
}

TEST_F(FinishedRunTest, ARunThatWentOn_IsNotFinished) {
  std::filesystem::create_directory(Folder(25));
  EXPECT_FALSE(IsFinished());
}

TEST_F(FinishedRunTest, ARunWithoutAResultOrACheckpoint_IsNotFinished) {
  std::filesystem::remove(wanted_.train_dir + "/result.json");
  EXPECT_FALSE(IsFinished());
  WriteText(wanted_.train_dir + "/result.json", "{}");
  EXPECT_TRUE(IsFinished());
  std::filesystem::remove_all(Folder(20));
  EXPECT_FALSE(IsFinished());
  wanted_.train_dir.clear();
  EXPECT_FALSE(IsFinished());
}

TEST_F(FinishedRunTest, WhatIsDamagedOrWasStopped_IsNotFinished) {
  const std::string path = FinishedRunPath(Folder(20));
  WriteText(path, "global_step: x");
  EXPECT_FALSE(IsFinished());
  for (const char* const reason : {"interrupted", "non_finite", "boredom"}) {
    run_.set_stop_reason(reason);
    Keep(20);
    EXPECT_FALSE(IsFinished()) << reason;
  }
}

TEST_F(FinishedRunTest, WhatIsDamaged_IsSaidByName) {
  ReportedLines lines;
  const std::string path = FinishedRunPath(Folder(20));
  std::filesystem::resize_file(path, 30);
  EXPECT_EQ(ReachedByChief(Folder(20), wanted_.goal, lines.reporter()), "");
  EXPECT_THAT(lines.lines(),
              ElementsAre(AllOf(StartsWith("W "), HasSubstr(path))));
  lines.Clear();
  std::filesystem::remove(path);
  EXPECT_EQ(ReachedByChief(Folder(20), wanted_.goal, lines.reporter()), "");
  EXPECT_THAT(lines.lines(), IsEmpty()) << "it did not end there";
}

TEST_F(FinishedRunTest, EachConditionIsReachedByAnEndForNoLess) {
  const auto is_finished = [this](const std::string& reason, double had,
                                  double wants) {
    const auto set = [&reason](double value, StopSpec* stop) {
      stop->Clear();
      if (reason == "epochs") stop->set_epochs(value);
      if (reason == "seconds") stop->set_seconds(value);
      if (reason == "target_accuracy") stop->set_target_accuracy(value);
      if (reason == "plateau") {
        stop->mutable_plateau()->set_patience(static_cast<int32_t>(value));
      }
    };
    run_.set_stop_reason(reason);
    set(had, run_.mutable_stop());
    set(wants, &wanted_.goal.stop);
    Keep(20);
    const std::string reached =
        ReachedByChief(Folder(20), wanted_.goal, Reporter());
    if (reason == "epochs") {
      EXPECT_EQ(reached, "") << "ps task 0 counts it";
    } else {
      EXPECT_EQ(reached, IsFinished() ? reason : "");
    }
    return IsFinished();
  };
  for (const char* const reason : {"epochs", "seconds", "target_accuracy"}) {
    EXPECT_TRUE(is_finished(reason, 0.5, 0.5)) << reason;
    EXPECT_TRUE(is_finished(reason, 0.5, 0.4)) << reason;
    EXPECT_FALSE(is_finished(reason, 0.5, 0.6)) << reason;
  }
  EXPECT_TRUE(is_finished("plateau", 3, 3));
  EXPECT_TRUE(is_finished("plateau", 3, 2));
  EXPECT_FALSE(is_finished("plateau", 3, 4));
}

}  // namespace
}  // namespace muster
